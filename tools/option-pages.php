<?php

declare(strict_types=1);

use Spindle\Tests\Docs\OptionPages;

require __DIR__ . '/../vendor/autoload.php';

foreach (OptionPages::all() as $path => $content) {
    file_put_contents($path, $content);
}
echo "The pages for users of GNU parallel and xargs are up to date\n";

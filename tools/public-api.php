<?php

declare(strict_types=1);

use Spindle\Tests\Architecture\PublicApi;

require __DIR__ . '/../vendor/autoload.php';

file_put_contents(PublicApi::SNAPSHOT, PublicApi::describe());
echo "public-api.txt is up to date\n";

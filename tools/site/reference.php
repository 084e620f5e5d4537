<?php

declare(strict_types=1);

/*
 * Writes the pages of docs/reference/ that are made from exceptions and metrics.
 */

use Spindle\Site\Reference\WrittenPages;

$project = dirname(__DIR__, 2);
require "{$project}/vendor/autoload.php";

foreach (WrittenPages::all($project) as $path => $content) {
    file_put_contents("{$project}/{$path}", $content);
    echo "{$path} is up to date\n";
}

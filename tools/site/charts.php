<?php

declare(strict_types=1);

/*
 * Draws the charts of the documentation from the raw data in bench/figures/. To measure again with PHP 8.2:
 *
 *     bin/spindle bench commands --memory 0,500 --peers proc_open --start posix_spawn --json bench/figures/memory.json
 */

use Spindle\Site\Chart\Chart;

$project = dirname(__DIR__, 2);
require "{$project}/vendor/autoload.php";

is_dir("{$project}/docs/images") || mkdir("{$project}/docs/images");
foreach (Chart::draw($project) as $path => $svg) {
    file_put_contents("{$project}/{$path}", $svg);
    echo "{$path} is up to date\n";
}

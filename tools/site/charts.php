<?php

declare(strict_types=1);

/*
 * Draws the charts of the documentation from the raw data in bench/figures/, and puts them into the page with the
 * benchmarks. To measure again, on a machine that does nothing else:
 *
 *     bin/spindle bench commands -n 2000 --rounds 3 --json bench/figures/commands.json
 *     bin/spindle bench commands --memory 0,500 --peers proc_open --start-method posix_spawn \
 *         --json bench/figures/memory.json
 *     bin/spindle bench tasks --only objects -n 50000 --rounds 3 --json bench/figures/tasks.json
 *     bin/spindle bench postgres --only select -n 50000 --rounds 3 --connections 4 --fibers 64 \
 *         --json bench/figures/postgres.json
 *     bin/spindle bench http --only text --seconds 2 --rounds 3 --json bench/figures/http.json
 */

use Spindle\Site\Chart\Chart;

$project = dirname(__DIR__, 2);
require "{$project}/vendor/autoload.php";

is_dir("{$project}/docs/images") || mkdir("{$project}/docs/images");
$files = Chart::draw($project);
$page = (string) file_get_contents("{$project}/" . Chart::PAGE);
foreach ([...$files, Chart::PAGE => Chart::placed($page, $files)] as $path => $content) {
    file_put_contents("{$project}/{$path}", $content);
    echo "{$path} is up to date\n";
}

<?php

declare(strict_types=1);

/*
 * Writes the pages of the documentation site for VitePress: build.php FOLDER. tools/docs runs it.
 */

use Spindle\Site\Site;
use Spindle\Site\SiteException;

$project = dirname(__DIR__, 2);
require "{$project}/vendor/autoload.php";

/** @var non-empty-list<string> $argv */
if (count($argv) !== 2) {
    fwrite(STDERR, "usage: build.php FOLDER\n");
    exit(255);
}
try {
    Site::of($project)->write($argv[1]);
} catch (SiteException $failure) {
    fwrite(STDERR, "error: {$failure->getMessage()}\n");
    exit(1);
}

<?php

declare(strict_types=1);

/*
 * Writes the pages of the documentation site for VitePress: build.php FOLDER. tools/docs runs it.
 */

use Spindle\Site\Site;
use Spindle\Site\SiteException;

$project = dirname(__DIR__, 2);
require "{$project}/vendor/autoload.php";

try {
    Site::of($project)->write($argv[1] ?? exit("usage: build.php FOLDER\n"));
} catch (SiteException $failure) {
    fwrite(STDERR, "error: {$failure->getMessage()}\n");
    exit(1);
}

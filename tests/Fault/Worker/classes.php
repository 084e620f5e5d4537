<?php

declare(strict_types=1);

/*
 * Loads classes in workers of another user. Composer's own autoload.php also loads files that only their owner may
 * read.
 */

use Composer\Autoload\ClassLoader;

$vendor = dirname(__DIR__, 3) . '/vendor';
require_once "{$vendor}/composer/ClassLoader.php";
$loader = new ClassLoader();
/** @var array<string, list<string>> $directories */
$directories = require "{$vendor}/composer/autoload_psr4.php";
foreach ($directories as $prefix => $paths) {
    $loader->setPsr4($prefix, $paths);
}
$loader->register();

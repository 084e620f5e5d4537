<?php

declare(strict_types=1);

/*
 * Classes that PHP-FPM preloads (`opcache.preload`): those that the application and its dependencies may need.
 */

use Composer\Autoload\ClassLoader;

const PRELOADED = [
    'Aircraft\\',
    'Spindle\\',
    'Amp\\',
    'Revolt\\',
    'Nyholm\Psr7\\',
    'Psr\Http\Message\\',
    'Psr\Http\Server\\',
    'Psr\Container\\',
    'Psr\Log\\',
    'Symfony\Component\Routing\\',
];

const EXCLUDED = '~/(?:Testing|Test|Cli|Command|DropIn|Loader|DependencyInjection|Generator|Dumper|Launcher)/~';

$loader = require __DIR__ . '/../../vendor/autoload.php';
assert($loader instanceof ClassLoader);

foreach (array_intersect_key($loader->getPrefixesPsr4(), array_flip(PRELOADED)) as $prefix => $folders) {
    foreach ($folders as $folder) {
        $paths = new RegexIterator(
            new RecursiveIteratorIterator(new RecursiveDirectoryIterator($folder)),
            '~/[A-Z]\w*\.php$~D',
        );
        foreach (array_keys(iterator_to_array($paths)) as $path) {
            if (preg_match(EXCLUDED, (string) $path) !== 1) {
                try {
                    class_exists($prefix . strtr(substr((string) $path, strlen($folder) + 1, -4), '/', '\\'));
                } catch (Throwable) {
                    // The class needs a package that is not installed, and is not needed here.
                }
            }
        }
    }
}
class_exists(Pimple\Container::class);
class_exists(Pimple\Psr11\Container::class);

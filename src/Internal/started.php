<?php

declare(strict_types=1);

namespace Spindle\Internal;

// Start time of this process or web request. Composer loads this file before a server may change REQUEST_TIME_FLOAT.
\defined(__NAMESPACE__ . '\STARTED')
    || \define(__NAMESPACE__ . '\STARTED', $_SERVER['REQUEST_TIME_FLOAT'] ?? microtime(true));

// If a class is missing after a deployment, names the cause. Runs after the autoloaders that were registered before.
spl_autoload_register((static function (): \Closure {
    $identify = static fn(): array => is_file(__FILE__) ? [fileinode(__FILE__), filemtime(__FILE__)] : [];
    $loaded = $identify();

    return static function (string $class) use ($identify, $loaded): void {
        if (str_starts_with($class, 'Spindle\\')) {
            clearstatcache();
            $folder = \dirname(__DIR__);
            $identify() === $loaded || throw new \Error(
                "Class \"{$class}\" not found, because the files of Spindle in {$folder} were replaced or removed after"
                    . ' this process started. Restart this process',
            );
        }
    };
})());

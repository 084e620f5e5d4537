<?php

declare(strict_types=1);

/*
 * Makes Spindle, its benchmarks and the installed peers loadable, in a checkout and in a project that has Spindle as a
 * dependency, whose autoloader does not know the benchmarks.
 */

(static function (): void {
    $autoloaders = array_filter([dirname(__DIR__) . '/vendor/autoload.php', dirname(__DIR__, 3) . '/autoload.php'], is_file(...));
    if ($autoloaders === []) {
        fwrite(STDERR, 'The Composer packages are missing: run composer install in ' . dirname(__DIR__) . "\n");
        exit(255);
    }
    require_once reset($autoloaders);
})();

spl_autoload_register(static function (string $class): void {
    $prefix = 'Spindle\Bench\\';
    $file = __DIR__ . '/' . strtr(substr($class, strlen($prefix)), '\\', '/') . '.php';
    if (str_starts_with($class, $prefix) && is_file($file)) {
        require $file;
    }
});

<?php

declare(strict_types=1);

/*
 * Makes Spindle, its benchmarks and the installed peers loadable, in a checkout and in a project that has Spindle as a
 * dependency, whose autoloader does not know the benchmarks.
 *
 * SPINDLE_BENCH_CHECKOUT names a checkout whose Spindle and packages are loaded instead, see Support/Checkout.php. The
 * benchmarks and the aircraft application stay those of this folder.
 */

(static function (): void {
    $checkout = getenv('SPINDLE_BENCH_CHECKOUT');
    $autoloaders = array_filter(
        $checkout === false
            ? [dirname(__DIR__) . '/vendor/autoload.php', dirname(__DIR__, 3) . '/autoload.php']
            : ["{$checkout}/vendor/autoload.php"],
        is_file(...),
    );
    if ($autoloaders === []) {
        $folder = $checkout === false ? dirname(__DIR__) : $checkout;
        fwrite(STDERR, "The Composer packages are missing: run composer install in {$folder}\n");
        exit(255);
    }
    require_once reset($autoloaders);
})();

spl_autoload_register(static function (string $class): void {
    $folders = ['Spindle\Bench\\' => __DIR__, 'Aircraft\\' => dirname(__DIR__) . '/examples/aircraft/src'];
    foreach ($folders as $prefix => $folder) {
        $file = "{$folder}/" . strtr(substr($class, strlen($prefix)), '\\', '/') . '.php';
        if (str_starts_with($class, $prefix) && is_file($file)) {
            require $file;
        }
    }
}, prepend: getenv('SPINDLE_BENCH_CHECKOUT') !== false);

<?php

declare(strict_types=1);

/*
 * Makes Spindle, its benchmarks and the installed peers loadable. This also works in a project that has Spindle as a
 * dependency: the autoloader of such a project does not know the benchmarks.
 *
 * SPINDLE_BENCH_CHECKOUT names a checkout whose Spindle and packages are loaded instead, see Support/Checkout.php. The
 * benchmarks and the aircraft application are still those of this folder.
 */

(static function (): void {
    $named = getenv('SPINDLE_BENCH_CHECKOUT');
    $checkout = $named === false ? dirname(__DIR__) : $named;
    $autoloaders = array_filter(
        ["{$checkout}/vendor/autoload.php", dirname($checkout, 2) . '/autoload.php'],
        is_file(...),
    );
    if ($autoloaders === []) {
        fwrite(STDERR, "The Composer packages are missing: run composer install in {$checkout}\n");
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

<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

use Composer\Autoload\ClassLoader;

/** Makes a new fork read the current code instead of code that an earlier process has cached. */
final class FreshCode
{
    private function __construct() {}

    public static function prepare(): void
    {
        clearstatcache(true);
        if (\function_exists('opcache_get_status')) {
            self::invalidateOpcache();
        }
        if (class_exists(ClassLoader::class, false)) {
            foreach (ClassLoader::getRegisteredLoaders() as $vendor => $loader) {
                self::reread($vendor, $loader);
            }
        }
    }

    /**
     * Makes OPcache check files again. All processes share OPcache, which takes the supervisor's start for the current
     * time, and so would never check a file again. Compares the ctime too, which changes even if a file is replaced
     * by one with the same mtime.
     */
    private static function invalidateOpcache(): void
    {
        /** @var array{opcache_statistics: array{start_time: int}, scripts?: array<string, mixed>}|false $status */
        $status = @opcache_get_status(true);
        if ($status === false) {
            return;
        }
        foreach (array_keys($status['scripts'] ?? []) as $file) {
            @opcache_invalidate($file, @filectime($file) >= $status['opcache_statistics']['start_time']);
        }
    }

    /** Updates a class loader from the files that `composer install` and `composer dump-autoload` write. */
    private static function reread(string $vendor, ClassLoader $loader): void
    {
        $loader->addClassMap(array_filter(self::map("{$vendor}/composer/autoload_classmap.php"), \is_string(...)));
        foreach (self::map("{$vendor}/composer/autoload_psr4.php") as $prefix => $folders) {
            /** @var list<string> $folders */
            $loader->setPsr4($prefix, $folders);
        }
    }

    /** @return array<string, mixed> */
    private static function map(string $file): array
    {
        $map = is_file($file) ? require $file : null;

        /** @var array<string, mixed> */
        return \is_array($map) ? $map : [];
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

use Composer\Autoload\ClassLoader;

/** Has a process that was just forked read the code as it is by now, and not as an earlier process has found it. */
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
     * It is shared by all processes, and takes the time of the supervisor's start for the present: it would never look at
     * a file again. A file's mtime does not tell that it was replaced by another of the same time; when that was, its
     * ctime does.
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

    /** What `composer install` and `composer dump-autoload` have written since. */
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

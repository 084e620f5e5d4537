<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

use Composer\Autoload\ClassLoader;
use Spindle\Internal\LoadedFiles;
use Spindle\Internal\Warnings;

/** Makes a new fork read the current code instead of code that an earlier process has cached. */
final class FreshCode
{
    public static function clearCaches(): void
    {
        clearstatcache(true);
        if (\function_exists('opcache_get_status') && \function_exists('opcache_invalidate')) {
            self::invalidateOpcache();
        }
        if (class_exists(ClassLoader::class, false)) {
            foreach (ClassLoader::getRegisteredLoaders() as $vendor => $loader) {
                self::reread($vendor, $loader);
            }
        }
    }

    /** Returns the PHP setting that prevents {@see clearCaches()} from clearing OPcache; null if there is none. */
    public static function blockingSetting(): ?string
    {
        if (!LoadedFiles::enablesOpcodeCache()) {
            return null;
        }
        if (!\function_exists('opcache_get_status') || !\function_exists('opcache_invalidate')) {
            return 'disable_functions';
        }
        $isRestricted = (string) \ini_get('opcache.restrict_api') !== ''
            && Warnings::suppressed(static fn(): array|false => opcache_get_status(false)) === false;

        return $isRestricted ? 'opcache.restrict_api' : null;
    }

    /**
     * Drops changed files from OPcache. In a fork, OPcache itself does not check a file again, because its clock is the
     * request time, which remains the start of the supervisor. Without $force, opcache_invalidate() drops a file only
     * if its mtime has changed. This method passes $force = true for a file whose ctime is OPcache's start or later,
     * because a file with the same mtime may have replaced the cached file.
     */
    private static function invalidateOpcache(): void
    {
        /** @var array{opcache_statistics: array{start_time: int}, scripts?: array<string, mixed>}|false $status */
        $status = Warnings::suppressed(static fn(): array|false => opcache_get_status(true));
        if ($status === false) {
            return;
        }
        foreach (array_keys($status['scripts'] ?? []) as $file) {
            $isRecent = LoadedFiles::changeTime($file) >= $status['opcache_statistics']['start_time'];
            Warnings::suppressed(static fn(): bool => opcache_invalidate($file, $isRecent));
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

<?php

declare(strict_types=1);

namespace Spindle\Internal;

use Spindle\Internal\Launcher\Process\Files;

/**
 * Finds out whether a file may have changed since PHP loaded it, and keeps the loaded text of chosen files.
 * PHP reports which files are loaded, but not when it loaded them. So this class uses the earliest possible time: the
 * last call of {@see record()} that did not find the file loaded, or the start of the process or web request.
 *
 * @phpstan-type CacheStatus array{
 *     preload_statistics?: array{scripts?: list<string>},
 *     opcache_statistics?: array<string, int>,
 * }
 */
final class LoadedFiles
{
    /** @var array<string, array{float, string}> earliest load time and {@see identity()}, by file */
    private static array $known = [];

    /** Time of the last call of {@see record()}, in seconds since 1970; null before the first call. */
    private static ?float $lastRecordAt = null;

    /** @var array<string, string> texts that PHP has loaded, by file */
    private static array $texts = [];

    /** Records which files are loaded now. If the next call finds one more file, PHP has loaded it after this call. */
    public static function record(): void
    {
        $now = microtime(true);
        foreach (get_included_files() as $file) {
            self::$known[$file] ??= [self::$lastRecordAt ?? self::startTime(), self::identity($file)];
        }
        self::$lastRecordAt = $now;
    }

    /** Keeps the text of a loaded file, unless the file may have changed since PHP loaded it. */
    public static function keepText(string $file): void
    {
        $text = Files::read($file);
        if ($text !== false && self::changedSinceLoad($file) === null) {
            self::$texts[$file] = $text;
        }
    }

    public static function keptText(string $file): ?string
    {
        return self::$texts[$file] ?? null;
    }

    /** Returns the earliest time at which PHP may have loaded the file, in seconds since 1970. */
    public static function earliestLoadTime(string $file): float
    {
        return self::earliestCompileTime($file, self::$known[$file][0] ?? self::$lastRecordAt ?? self::startTime());
    }

    /**
     * Returns null if the file has certainly not changed since PHP loaded it. Otherwise returns the time of its last
     * change in seconds since 1970, or 0.0 if that time is unknown.
     */
    public static function changedSinceLoad(string $file): ?float
    {
        clearstatcache();
        $since = self::earliestLoadTime($file);
        $identity = self::$known[$file][1] ?? null;
        $changed = self::changeTime(self::path($file));
        if ($identity !== null && $identity !== self::identity($file)) {
            return $changed;
        }
        if ((int) $changed === (int) $since) {
            // PHP's stat() returns whole seconds. If the fraction is unknown, the file counts as changed after loading.
            $changed = self::preciseChangeTime($file) ?? $changed + 1;
        }
        $isKnown = $changed > 0; // some stream wrappers report no time

        return $isKnown && $changed <= $since ? null : $changed;
    }

    /**
     * Returns for how many seconds after a change of the file OPcache may give new requests the old version; null if
     * only a new process loads the new one. After this time, {@see changedSinceLoad()} returns null in new requests.
     */
    public static function reloadDelay(string $file): ?int
    {
        $cacheDelay = self::cacheDelay($file);

        return $cacheDelay === null ? null : $cacheDelay + 1; // changedSinceLoad() may add 1 s to a change time
    }

    public static function enablesOpcodeCache(): bool
    {
        $option = self::isCommandLine() ? 'opcache.enable_cli' : 'opcache.enable';

        return (bool) \ini_get('opcache.enable') && (bool) \ini_get($option);
    }

    /** Returns the change time of a file in whole seconds; 0.0 if it has none. */
    public static function changeTime(string $path): float
    {
        return (float) Warnings::suppressed(static fn(): int|false => filectime($path));
    }

    /** Returns inode, size and change time of the file as a string; '' if PHP can't see the file. */
    public static function identity(string $file): string
    {
        clearstatcache();

        return Warnings::suppressed(static function () use ($file): string {
            $path = self::path($file);

            return is_file($path) ? fileinode($path) . ' ' . filesize($path) . ' ' . filectime($path) : '';
        });
    }

    /** Returns the path of the phar for a file in a phar: the file has older times, from before it was packed. */
    public static function path(string $file): string
    {
        if (!str_starts_with($file, 'phar://')) {
            return $file;
        }
        $path = substr($file, \strlen('phar://'));
        while (!is_file($path) && $path !== \dirname($path)) {
            $path = \dirname($path);
        }

        return is_file($path) ? $path : $file;
    }

    /** Returns the change time with fractions of a second; null without the program `stat`, or if the fraction is 0. */
    private static function preciseChangeTime(string $file): ?float
    {
        if (!\function_exists('proc_open')) {
            return null;
        }
        $output = [1 => ['pipe', 'w'], 2 => ['null']];
        $pipes = [];
        $stat = Warnings::suppressed(static function () use ($file, $output, &$pipes): mixed {
            return proc_open(['stat', '-c', '%z', '--', self::path($file)], $output, $pipes);
        });
        if ($stat === false) {
            return null;
        }
        $time = trim((string) stream_get_contents($pipes[1]));
        proc_close($stat);
        if (preg_match('/^[\d-]+ [\d:]+\.\d*[1-9]\d* [+-]\d{4}$/', $time) !== 1) {
            return null;
        }

        return (float) (new \DateTimeImmutable($time))->format('U.u');
    }

    /** Returns the start time of this process or web request, in seconds since 1970; 0.0 when unknown. */
    private static function startTime(): float
    {
        $now = $_SERVER['REQUEST_TIME_FLOAT'] ?? null;
        $first = \defined(__NAMESPACE__ . '\STARTED') ? \constant(__NAMESPACE__ . '\STARTED') : $now;

        return \is_float($first) ? $first : 0.0;
    }

    /**
     * Returns the earliest time at which PHP may have compiled the file's code. `$loaded` is the earliest time at which
     * this process may have loaded the file. With OPcache, PHP may have compiled the code before that time.
     */
    private static function earliestCompileTime(string $file, float $loaded): float
    {
        if (!self::usesOpcodeCache()) {
            return $loaded;
        }
        if (!(bool) \ini_get('opcache.validate_timestamps') && (string) \ini_get('opcache.file_cache') !== '') {
            return 0.0; // OPcache may have written the code to its file cache at any time
        }
        if (self::isCommandLine()) {
            return $loaded;
        }
        $delay = self::cacheDelay($file);
        if ($delay !== null) {
            return $loaded - $delay;
        }
        $statistics = self::cacheStatus()['opcache_statistics'] ?? [];

        return min($loaded, (float) max(0, $statistics['start_time'] ?? 0, $statistics['last_restart_time'] ?? 0));
    }

    /** Returns the maximum seconds for which new requests run old code; null if only a new process loads new code. */
    private static function cacheDelay(string $file): ?int
    {
        if (self::isCommandLine()) {
            return null;
        }
        if (!self::usesOpcodeCache()) {
            return 0;
        }
        $preloaded = self::cacheStatus()['preload_statistics']['scripts'] ?? [];
        $isChecked = (bool) \ini_get('opcache.validate_timestamps') && !\in_array($file, $preloaded, true);

        // OPcache counts whole seconds, and checks a file again after more than `revalidate_freq` seconds.
        return $isChecked ? (int) \ini_get('opcache.revalidate_freq') + 1 : null;
    }

    private static function isCommandLine(): bool
    {
        return \PHP_SAPI === 'cli' || \PHP_SAPI === 'phpdbg';
    }

    private static function usesOpcodeCache(): bool
    {
        return self::enablesOpcodeCache() && \function_exists('opcache_get_status');
    }

    /** @return CacheStatus */
    private static function cacheStatus(): array
    {
        /** @var CacheStatus */
        return (array) Warnings::suppressed(static fn(): array|false => opcache_get_status(false));
    }
}

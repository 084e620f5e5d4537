<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher;

use Spindle\Internal\Launcher\Process\Files;
use Spindle\Internal\Warnings;

/** Finds out whether a deployment has replaced the source files of a helper process, perhaps by incompatible ones. */
final class HelperCode
{
    /** Files and folders in src that a launcher, or a worker and the host of workers, load. */
    public const LAUNCHER = [
        'Internal/Launcher/LauncherProtocol.php', 'Internal/FrameHandler.php', 'Internal/FrameReader.php',
        'Internal/MalformedFrameException.php', 'Internal/Launcher/Process',
    ];
    public const WORKER = [
        'Worker/Internal/WorkerProtocol.php', 'Worker/Internal/ValuePacking.php', 'Worker/Internal/TaskCode.php',
        'Worker/Internal/ValueSerializer.php', 'Worker/Internal/SharedFlags.php', 'Worker/Internal/Process',
        'Worker/Internal/SentClosure.php', 'Worker/Internal/SentCallable.php', 'Worker/Internal/ClosureUnpacker.php',
        'Worker/Internal/ClosureStream.php', 'Worker/PortableTask.php', 'Worker/Thrown.php',
        'Internal/Launcher/LauncherProtocol.php', 'Internal/FrameReader.php',
    ];

    /** @var array<string, string> hash of the files' contents when they were recorded, by first path */
    private static array $hashes = [];

    /**
     * Records the present files. Called when this process loads its own side of the protocol.
     *
     * @param self::LAUNCHER|self::WORKER $paths
     */
    public static function record(array $paths): void
    {
        $isRecorded = isset(self::$hashes[$paths[0]]);
        $hash = !$isRecorded && \function_exists('scandir') ? self::hash($paths) : null; // no helper starts without it
        if ($hash !== null) {
            self::$hashes[$paths[0]] = $hash;
        }
    }

    /**
     * Returns the reason why no helper can be started; null if the files are those of the first {@see record()}.
     *
     * @param self::LAUNCHER|self::WORKER $paths
     */
    public static function failure(array $paths): ?string
    {
        $present = self::hash($paths);
        if ($present === null || $present === (self::$hashes[$paths[0]] ??= $present)) {
            return null;
        }

        return 'its source files in ' . \dirname(__DIR__, 2) . ' have changed since this process loaded them, or can\'t'
            . ' be read, as after a deployment. Restart this process';
    }

    /**
     * @param self::LAUNCHER|self::WORKER $paths
     *
     * @return string|null null if files can't be opened, because no descriptor is free, or due to open_basedir
     */
    private static function hash(array $paths): ?string
    {
        $context = hash_init('xxh128');
        foreach ($paths as $path) {
            foreach (self::filesOf(\dirname(__DIR__, 2) . "/{$path}") as $file) {
                $code = Files::read($file);
                $isUnread = static fn(): bool => ($code === false || is_dir($file)) && is_readable($file);
                $mayBeHidden = (string) \ini_get('open_basedir') !== '';
                if ((string) $code === '' && ($mayBeHidden || Warnings::suppressed($isUnread))) {
                    return null;
                }
                hash_update($context, "{$code}\0");
            }
        }

        return hash_final($context);
    }

    /** @return list<string> Spindle's files; not those of an editor or of macOS. A folder itself if it is unreadable */
    public static function filesOf(string $path): array
    {
        $isCode = static fn(string $name): bool => preg_match('/^[\w-]+(\.(php|lua|html|css|js))?$/D', $name) === 1;
        $names = str_ends_with($path, '.php') ? [] : array_values(array_filter(Files::in($path), $isCode));
        $files = array_map(static fn(string $name): array => self::filesOf("{$path}/{$name}"), $names);

        return $files === [] ? [$path] : array_merge(...$files);
    }
}

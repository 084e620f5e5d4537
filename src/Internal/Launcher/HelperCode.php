<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher;

use Spindle\Internal\Launcher\Process\Files;

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
        if (\function_exists('scandir')) { // otherwise no helper can be started
            self::$hashes[$paths[0]] ??= self::hash($paths);
        }
    }

    /**
     * Returns the reason why no helper can be started; null if the files are those of the first {@see record()}.
     *
     * @param self::LAUNCHER|self::WORKER $paths
     */
    public static function failure(array $paths): ?string
    {
        self::record($paths);

        return self::hash($paths) === (self::$hashes[$paths[0]] ?? null)
            ? null
            : 'its source files in ' . \dirname(__DIR__, 2) . ' have changed since this process loaded them, or can\'t'
                . ' be read, as after a deployment. Restart this process';
    }

    /** @param self::LAUNCHER|self::WORKER $paths */
    private static function hash(array $paths): string
    {
        $source = \dirname(__DIR__, 2);
        $context = hash_init('xxh128');
        foreach ($paths as $path) {
            foreach (str_ends_with($path, '.php') ? [$path] : self::filesIn($source, $path) as $file) {
                hash_update($context, (string) Files::read("{$source}/{$file}") . "\0");
            }
        }

        return hash_final($context);
    }

    /** @return list<string> files with code; not those of an editor or of macOS */
    private static function filesIn(string $source, string $folder): array
    {
        $isCode = static fn(string $name): bool => preg_match('/^\w+\.php$/D', $name) === 1;
        $names = array_filter(Files::in("{$source}/{$folder}"), $isCode);

        return array_values(array_map(static fn(string $name): string => "{$folder}/{$name}", $names));
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Internal\Testing;

use Spindle\Internal\Launcher\Process\Files;
use Spindle\Internal\Warnings;

/** Creates and fills the directory of a temporary PostgreSQL or Redis server. Only the current user has access. */
final class PrivateDirectory
{
    /**
     * If the path of the system's temporary directory is longer than this limit, the constructor uses /tmp. So the path
     * of a server's socket has at most 103 bytes: "/spindle-postgres-", 12 digits and "/.s.PGSQL.65535" add 45 bytes.
     * Linux allows 107 bytes for the path of a socket, and macOS 103.
     */
    private const MAX_TEMPORARY_DIRECTORY_BYTES = 58;

    public readonly string $path;

    public function __construct(string $kind)
    {
        $temporary = Warnings::suppressed(static fn(): string|false => realpath(sys_get_temp_dir()));
        $isUsable = $temporary !== false && \strlen($temporary) <= self::MAX_TEMPORARY_DIRECTORY_BYTES;
        $this->path = ($isUsable ? $temporary : '/tmp') . "/spindle-{$kind}-" . bin2hex(random_bytes(6));
    }

    /** @throws ServerException when the directory, or one of the folders in it, can't be created */
    public function make(string ...$folders): void
    {
        foreach ([
            $this->path,
            ...array_map(fn(string $folder): string => "{$this->path}/{$folder}", array_values($folders)),
        ] as $path) {
            error_clear_last();
            if (!Warnings::suppressed(static fn(): bool => mkdir($path, 0o700))) {
                throw ServerException::cannotDo(
                    "The directory {$path} could not be created",
                    error_get_last()['message'] ?? 'mkdir failed',
                );
            }
        }
    }

    /**
     * Writes a file that only the current user can access, and returns its path.
     *
     * @throws ServerException
     */
    public function write(string $name, #[\SensitiveParameter] string $content, int $flags = 0): string
    {
        $path = "{$this->path}/{$name}";
        $mask = umask(0o077);
        error_clear_last();
        $written = Warnings::suppressed(static fn(): int|false => file_put_contents($path, $content, $flags));
        umask($mask);

        return $written === \strlen($content)
            ? $path
            : throw ServerException::cannotDo(
                "{$path} could not be written",
                error_get_last()['message'] ?? 'is the disk full?',
            );
    }

    /**
     * Copies a file into the directory, and returns the path of the copy. Only the current user can access the copy.
     *
     * @throws ServerException
     */
    public function copy(string $file, string $name): string
    {
        error_clear_last();
        $content = Files::read($file);

        return $this->write(
            $name,
            $content !== false
                ? $content
                : throw ServerException::cannotDo(
                    "The file {$file} could not be read",
                    error_get_last()['message'] ?? '',
                ),
        );
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Internal\Testing;

/** The directory with all files of a temporary server, for this user only. */
final class PrivateDirectory
{
    /**
     * Longest directory for temporary files that is used. The path of a socket in a directory below it then has at
     * most 103 bytes: "/spindle-postgres-", 12 digits and "/.s.PGSQL.65535" are 45. Linux allows 107, macOS 103.
     */
    private const MAX_TEMPORARY_DIRECTORY_BYTES = 58;

    public readonly string $path;

    /** @param string $kind type of server */
    public function __construct(string $kind)
    {
        $temporary = realpath(sys_get_temp_dir());
        $this->path = ($temporary === false || \strlen($temporary) > self::MAX_TEMPORARY_DIRECTORY_BYTES ? '/tmp' : $temporary)
            . "/spindle-{$kind}-"
            . bin2hex(random_bytes(6));
    }

    /**
     * @param string ...$folders within it
     *
     * @throws ServerException
     */
    public function make(string ...$folders): void
    {
        foreach ([
            $this->path,
            ...array_map(fn(string $folder): string => "{$this->path}/{$folder}", array_values($folders)),
        ] as $path) {
            error_clear_last();
            if (!@mkdir($path, 0o700)) {
                throw ServerException::cannotDo(
                    "The directory {$path} could not be created",
                    error_get_last()['message'] ?? 'mkdir failed',
                );
            }
        }
    }

    /**
     * @return string path of the file, which is for this user only
     *
     * @throws ServerException
     */
    public function write(string $name, #[\SensitiveParameter] string $content, int $flags = 0): string
    {
        $path = "{$this->path}/{$name}";
        $mask = umask(0o077);
        error_clear_last();
        $written = @file_put_contents($path, $content, $flags);
        umask($mask);

        return $written === \strlen($content)
            ? $path
            : throw ServerException::cannotDo(
                "{$path} could not be written",
                error_get_last()['message'] ?? 'is the disk full?',
            );
    }

    /**
     * @return string path of the copy
     *
     * @throws ServerException
     */
    public function copy(string $file, string $name): string
    {
        error_clear_last();
        $content = @file_get_contents($file);

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

<?php

declare(strict_types=1);

namespace Spindle\Internal;

/** Checks whether other users have access to a file with a secret, as libpq does for the key of a client. */
final class SecretFile
{
    private const ALL_BUT_OWNER = 0o077;

    /** The group of a file of root may read the file: Kubernetes and systemd give secrets to users in this way. */
    private const ALL_BUT_READING_GROUP = 0o037;

    /** @param int $mode result of fileperms() for this file */
    public static function isExposed(string $file, int $mode): bool
    {
        return ($mode & (fileowner($file) === 0 ? self::ALL_BUT_READING_GROUP : self::ALL_BUT_OWNER)) !== 0;
    }

    /**
     * Reads a file. If the path is that of a file's descriptor, opens the file again, because readers of one descriptor
     * share their position in the file. The descriptor of a pipe is read as it is: to open a named pipe again would
     * wait for a process that writes into the pipe.
     *
     * @param int<0, max>|null $maxBytes
     *
     * @return string|false contents of a file or pipe; false if it can't be read
     */
    public static function contents(string $file, ?int $maxBytes = null): string|false
    {
        $read = static fn(string $path): string|false => Warnings::suppressed(
            static fn(): string|false => file_get_contents($path, length: $maxBytes),
        );
        $contents = is_file($file) ? $read($file) : false;

        return $contents === false ? $read(FileType::streamPath($file)) : $contents;
    }
}

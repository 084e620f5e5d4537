<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Answer;

use Spindle\Http\HttpException;
use Spindle\Internal\FileType;
use Spindle\Internal\NullDevice;
use Spindle\Internal\Warnings;

/** A regular file open for reading. Its properties describe this file, even if another file gets the same path. */
final readonly class OpenFile
{
    /** "n": opening a pipe does not wait for a writer. "e": programs that a handler starts do not inherit the file. */
    private const OPEN_MODE = 'rne';

    /** A modification counts as recent for this many seconds: another change could get the same modification time. */
    public const RECENT_SECONDS = 1;

    /**
     * @param resource $descriptor
     * @param int      $size       in bytes
     * @param int      $modified   Unix time
     */
    private function __construct(
        private string $path,
        private mixed $descriptor,
        public int $size,
        private int $modified,
        private int $device,
        private int $inode,
    ) {}

    /**
     * @param string $path path on disk; a URL is treated as a file name, and is not opened by a stream wrapper
     *
     * @throws HttpException 404 when the file does not exist or is not a regular file, 403 when it can't be read
     * @throws \RuntimeException when the process has too many open files
     */
    public static function at(string $path): self
    {
        clearstatcache(true); // PHP caches link targets for minutes
        $path = str_starts_with($path, '/') ? $path : "./{$path}";
        if (str_contains($path, "\0")) {
            throw self::notFound();
        }
        $descriptor = Warnings::suppressed(static fn(): mixed => fopen($path, self::OPEN_MODE));
        if ($descriptor === false) {
            throw self::failure($path);
        }
        $status = fstat($descriptor);
        if ($status === false || FileType::ofMode($status['mode']) !== FileType::Regular) {
            throw self::notFound();
        }

        return new self($path, $descriptor, $status['size'], $status['mtime'], $status['dev'], $status['ino']);
    }

    /**
     * Returns the file's path without links; null if this path is not below the root, or leads to another file now.
     *
     * @param string $root path without links
     */
    public function nameBelow(string $root): ?string
    {
        clearstatcache(true);
        $real = realpath($this->path);
        if ($real === false || !str_starts_with($real, rtrim($root, '/') . '/')) {
            return null;
        }
        $status = Warnings::suppressed(static fn(): array|false => lstat($real));

        return $status !== false && $status['dev'] === $this->device && $status['ino'] === $this->inode ? $real : null;
    }

    /**
     * Returns the ETag (RFC 9110, 8.8.3). Two changes in the same second get the same modification time. So the ETag is
     * weak while the modification is recent. Later, the file gets a different, strong ETag.
     */
    public function etag(int $now): string
    {
        $tag = \sprintf('%x-%x-%x', $this->inode, $this->size, $this->modified);

        return $this->isRecent($now) ? "W/\"{$tag}-recent\"" : "\"{$tag}\"";
    }

    /**
     * Returns the Last-Modified time. While the modification is recent, the file may change again in the same second.
     * So the returned time is then 1 s too early. Later, the correct time makes clients load the file again.
     */
    public function lastModified(int $now): int
    {
        return min($this->modified, $now) - (int) $this->isRecent($now);
    }

    public function whole(): FileStream
    {
        return new FileStream($this->descriptor, 0, $this->size);
    }

    public function part(ByteRange $range): FileStream
    {
        return new FileStream($this->descriptor, $range->first, $range->length());
    }

    private function isRecent(int $now): bool
    {
        return $this->modified >= $now - self::RECENT_SECONDS;
    }

    private static function failure(string $path): \RuntimeException
    {
        if (!Warnings::suppressed(static fn(): bool => is_file($path))) {
            return self::notFound();
        }

        return NullDevice::lacksDescriptor()
            ? new \RuntimeException("Could not open {$path}: too many open files")
            : new HttpException(403, 'The file can not be read');
    }

    private static function notFound(): HttpException
    {
        return new HttpException(404, 'The file does not exist');
    }
}

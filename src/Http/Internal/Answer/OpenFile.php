<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Answer;

use Spindle\Http\HttpException;

/** A regular file that was opened for reading. What is told of it holds for what will be read, whatever becomes of its name. */
final readonly class OpenFile
{
    private const KIND = 0o170_000;
    private const REGULAR = 0o100_000;

    /** Neither waits for the writer of a pipe, nor is inherited by the programs that are started meanwhile. */
    private const MODE = 'rne';

    /**
     * @param resource $descriptor
     * @param int      $size       in bytes
     * @param int      $modified   Unix time
     */
    private function __construct(
        private string $path,
        private mixed $descriptor,
        public int $size,
        public int $modified,
        private int $device,
        private int $inode,
    ) {}

    /**
     * @param string $path on the disk: what looks like the URL of a stream wrapper is a name, too
     *
     * @throws HttpException     404 when there is no such file, 403 when it can not be read
     * @throws \RuntimeException when no file can be opened at present
     */
    public static function at(string $path): self
    {
        clearstatcache(true); // PHP remembers for minutes where links lead to
        $path = str_starts_with($path, '/') ? $path : "./{$path}";
        $descriptor = str_contains($path, "\0") ? false : @fopen($path, self::MODE);
        if ($descriptor === false) {
            throw self::failure($path);
        }
        $status = fstat($descriptor);
        if ($status === false || ($status['mode'] & self::KIND) !== self::REGULAR) {
            throw self::absent();
        }

        return new self($path, $descriptor, $status['size'], $status['mtime'], $status['dev'], $status['ino']);
    }

    /**
     * The name without links, if it lies below the root, and is still that of the very file that was opened: a link that
     * was exchanged in between gains nothing.
     *
     * @param string $root without links
     */
    public function nameBelow(string $root): ?string
    {
        clearstatcache(true);
        $real = realpath($this->path);
        if ($real === false || !str_starts_with($real, rtrim($root, '/') . '/')) {
            return null;
        }
        $status = @lstat($real);

        return $status !== false && $status['dev'] === $this->device && $status['ino'] === $this->inode ? $real : null;
    }

    /**
     * Weak while the file could be changed once more without a change of its time, which has whole seconds.
     *
     * @see https://www.rfc-editor.org/rfc/rfc9110#section-8.8.3
     *
     * @param int $now Unix time
     */
    public function tag(int $now): string
    {
        return ($this->modified < $now - 1 ? '' : 'W/') . \sprintf('"%x-%x-%x"', $this->inode, $this->size, $this->modified);
    }

    public function whole(): FileStream
    {
        return new FileStream($this->descriptor, 0, $this->size);
    }

    public function part(ByteRange $range): FileStream
    {
        return new FileStream($this->descriptor, $range->first, $range->length());
    }

    private static function failure(string $path): \RuntimeException
    {
        if (!is_file($path)) {
            return self::absent();
        }

        return @fopen('/dev/null', 'r') === false
            ? new \RuntimeException("Can not open {$path}: too many open files")
            : new HttpException(403, 'The file can not be read');
    }

    private static function absent(): HttpException
    {
        return new HttpException(404, 'There is no such file');
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

/**
 * A stream over a file that others read through the same descriptor, with a position of its own.
 *
 * An unlinked file can't be opened again: PHP looks for the name behind /proc/self/fd/N, and a duplicate of the
 * descriptor shares its position.
 *
 * @see https://www.php.net/streamwrapper
 */
final class CaptureStream
{
    private const SCHEME = 'spindle-capture';
    private const READ_SIZE = 1 << 16;

    /** @var resource|null set by PHP before it calls stream_open() */
    public mixed $context = null;

    /** @var resource|null */
    private mixed $file = null;
    private int $position = 0;

    /**
     * @param resource $file
     *
     * @return resource
     */
    public static function over(mixed $file): mixed
    {
        if (!\in_array(self::SCHEME, stream_get_wrappers(), true)) {
            stream_wrapper_register(self::SCHEME, self::class);
        }
        $stream = fopen(self::SCHEME . '://', 'r', false, stream_context_create([self::SCHEME => ['file' => $file]]));
        \assert($stream !== false);
        stream_set_chunk_size($stream, self::READ_SIZE);

        return $stream;
    }

    public function stream_open(): bool
    {
        $options = \is_resource($this->context) ? stream_context_get_options($this->context)[self::SCHEME] ?? null : null;
        if (!\is_array($options) || !\is_resource($options['file'] ?? null)) {
            return false;
        }
        $this->file = $options['file'];

        return true;
    }

    public function stream_read(int $count): string
    {
        if (!\is_resource($this->file) || $count < 1) {
            return '';
        }
        fseek($this->file, $this->position);
        $bytes = (string) fread($this->file, $count);
        $this->position += \strlen($bytes);

        return $bytes;
    }

    public function stream_eof(): bool
    {
        return $this->position >= $this->size();
    }

    /** PHP itself turns a relative position into an absolute one. */
    public function stream_seek(int $offset, int $whence): bool
    {
        $position = $offset + ($whence === \SEEK_END ? $this->size() : 0);
        if ($position < 0) {
            return false;
        }
        $this->position = $position;

        return true;
    }

    public function stream_tell(): int
    {
        return $this->position;
    }

    /** @return array<int|string, int>|false */
    public function stream_stat(): array|false
    {
        return \is_resource($this->file) ? fstat($this->file) : false;
    }

    private function size(): int
    {
        return $this->stream_stat()['size'] ?? 0;
    }
}

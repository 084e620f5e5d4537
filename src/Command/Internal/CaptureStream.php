<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

/**
 * Reads a file through a descriptor that other streams use too. Each stream has its own position in the file.
 *
 * An unlinked file can't be opened again, because PHP resolves /proc/self/fd/N to the former name of the file. A
 * duplicate of the descriptor would use the same position as the original.
 *
 * @see https://www.php.net/streamwrapper
 */
final class CaptureStream
{
    private const SCHEME = 'spindle-capture';
    private const READ_BYTES = 1 << 16;

    /** @var resource|null set by PHP before it calls stream_open() */
    public mixed $context = null;

    /** @var resource|null */
    private mixed $file = null;
    private int $position = 0;

    /** Offset and length of the part that the stream reads; a length of null means the rest of the file. */
    private int $start = 0;
    private ?int $length = null;

    /**
     * @param resource $file
     * @param int|null $length null for the rest of the file, including bytes that are written later
     *
     * @return resource
     */
    public static function over(mixed $file, int $start = 0, ?int $length = null): mixed
    {
        if (!\in_array(self::SCHEME, stream_get_wrappers(), true)) {
            stream_wrapper_register(self::SCHEME, self::class);
        }
        $stream = fopen(
            self::SCHEME . '://',
            'r',
            false,
            stream_context_create([self::SCHEME => ['file' => $file, 'start' => $start, 'length' => $length]]),
        );
        \assert($stream !== false);
        stream_set_chunk_size($stream, self::READ_BYTES);

        return $stream;
    }

    public function stream_open(): bool
    {
        $options = \is_resource($this->context)
            ? stream_context_get_options($this->context)[self::SCHEME] ?? null
            : null;
        if (!\is_array($options) || !\is_resource($options['file'] ?? null)) {
            return false;
        }
        [$start, $length] = [$options['start'] ?? 0, $options['length'] ?? null];
        $this->file = $options['file'];
        $this->start = \is_int($start) ? $start : 0;
        $this->length = \is_int($length) ? $length : null;

        return true;
    }

    public function stream_read(int $count): string
    {
        if (!\is_resource($this->file) || $count < 1) {
            return '';
        }
        $count = min($count, $this->size() - $this->position);
        if ($count < 1) {
            return '';
        }
        fseek($this->file, $this->start + $this->position);
        $bytes = (string) fread($this->file, $count);
        $this->position += \strlen($bytes);

        return $bytes;
    }

    public function stream_eof(): bool
    {
        return $this->position >= $this->size();
    }

    /** Moves the position. PHP converts SEEK_CUR to SEEK_SET before this call. */
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
        $file = \is_resource($this->file) ? fstat($this->file) : false;

        return $file === false ? false : array_replace($file, ['size' => $this->size()]);
    }

    private function size(): int
    {
        return $this->length ?? (\is_resource($this->file) ? (fstat($this->file)['size'] ?? 0) - $this->start : 0);
    }
}

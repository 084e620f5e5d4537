<?php

declare(strict_types=1);

namespace Spindle\Internal\Network;

use Spindle\Internal\Warnings;

/** Bytes that wait to be written to a stream. Small parts are joined, large ones are not. */
final class WriteBuffer
{
    /** Maximum bytes of one write. For larger writes, substr() would copy many bytes that the stream refuses. */
    private const MAX_WRITE_BYTES = 0x4_0000;

    public const LARGE_BYTES = 0x1_0000;

    /** @var list<string> parts to be written before {@see $tail} */
    private array $parts = [];

    /** Small parts that were added after the last of {@see $parts}. */
    public string $tail = '';

    private int $offset = 0;

    public int $size = 0;

    public function add(#[\SensitiveParameter] string $bytes): void
    {
        $this->size += \strlen($bytes);
        if (\strlen($bytes) < self::LARGE_BYTES) {
            $this->tail .= $bytes;

            return;
        }
        if ($this->tail !== '') {
            $this->parts[] = $this->tail;
            $this->tail = '';
        }
        $this->parts[] = $bytes;
    }

    /**
     * Writes as many bytes as the stream accepts now.
     *
     * @param resource $stream
     *
     * @return bool false when writing has failed, for example because the server closed the connection
     */
    public function flush($stream): bool
    {
        if ($this->parts === [] && $this->size <= self::MAX_WRITE_BYTES) {
            // The usual case: all bytes are in the tail.
            $written = Warnings::writeFast($stream, $this->tail);
            if ($written === $this->size) {
                $this->tail = '';
                $this->size = 0;

                return true;
            }
            if ($written === false) {
                return false;
            }
            $this->tail = substr($this->tail, $written);
            $this->size -= $written;

            return true;
        }
        while ($this->size > 0) {
            if ($this->parts === []) {
                $this->parts[] = $this->tail;
                $this->tail = '';
            }
            $part = $this->parts[0];
            $chunk = $this->offset === 0 && \strlen($part) <= self::MAX_WRITE_BYTES
                ? $part
                : substr($part, $this->offset, self::MAX_WRITE_BYTES);
            $written = Warnings::writeFast($stream, $chunk);
            if ($written === false) {
                return false;
            }
            $this->size -= $written;
            $this->offset += $written;
            if ($this->offset === \strlen($part)) {
                array_shift($this->parts);
                $this->offset = 0;
            }
            if ($written < \strlen($chunk)) {
                break;
            }
        }

        return true;
    }

    /** @return array<string, int> sizes, no content */
    public function __debugInfo(): array
    {
        return ['size' => $this->size];
    }
}

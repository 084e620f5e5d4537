<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

use Psr\Http\Message\StreamInterface;
use Spindle\Http\Internal\Message\PositionedStream;
use Spindle\Http\Internal\Message\StreamSize;

/**
 * A seekable resource of the caller, as the body of a request. The body begins at the position that the resource has
 * when the request is made. This object has its own position, because the caller can pass one resource to several
 * requests. This object does not close the resource.
 */
final class SymfonyFile implements StreamInterface
{
    use PositionedStream;

    /** @var array<int, array{int, int}> start of the body, and position after the last read, by id of the resource */
    private static array $reads = [];

    /** @var (\Closure(int): void)|null gets the number of bytes of each read */
    public ?\Closure $onRead = null;

    private int $start;

    /** Size of the body at the last {@see getSize()}. Bytes that are appended to the file later are not read. */
    private int $end = \PHP_INT_MAX;

    private bool $isAtEnd = false;

    /** Whether the caller may use the resource again. Each read then restores the position of the resource. */
    private bool $isReleased = false;

    private bool $isCopy = false;

    /** @param resource $resource */
    public function __construct(private mixed $resource)
    {
        $position = (int) ftell($resource);
        [$start, $readEnd] = self::$reads[get_resource_id($resource)] ?? [$position, $position];
        // Another request may have read from the same resource. If the resource is still where that read left it, the
        // caller has not moved it. Then this body begins where the body of that request begins.
        $this->start = $position === $readEnd ? $start : $position;
    }

    public function secondReader(): self
    {
        $copy = clone $this;
        $copy->onRead = null;
        $copy->rewind();

        return $copy;
    }

    /** @param resource $copy has the bytes of the body */
    public function replace(mixed $copy): void
    {
        $this->release();
        [$this->resource, $this->start, $this->isCopy] = [$copy, 0, true];
    }

    /** Moves the resource back to the body's start, unless the caller has moved it. A further call has no effect. */
    public function release(): void
    {
        if ($this->isReleased) {
            return;
        }
        $this->isReleased = true;
        $id = get_resource_id($this->resource);
        [$start, $readEnd] = self::$reads[$id] ?? [0, null];
        unset(self::$reads[$id]);
        if (\is_resource($this->resource) && ftell($this->resource) === $readEnd) {
            fseek($this->resource, $start);
        }
    }

    public function read(int $length): string
    {
        $offset = $this->start + $this->position;
        $before = (int) ftell($this->resource);
        $isPositioned = $before === $offset || fseek($this->resource, $offset) === 0;
        $length = min($length, $this->end - $this->position);
        $bytes = match (true) {
            !$isPositioned => false,
            $length < 1 => '',
            default => fread($this->resource, $length),
        };
        if ($bytes === false) {
            throw new \RuntimeException("the resource can't be read at the position {$offset}");
        }
        $this->position += \strlen($bytes);
        $this->isAtEnd = feof($this->resource) || $this->position >= $this->end;
        if ($this->isReleased && !$this->isCopy) {
            fseek($this->resource, $before);
        } elseif (!$this->isReleased) {
            self::$reads[get_resource_id($this->resource)] = [$this->start, (int) ftell($this->resource)];
        }
        if ($this->onRead !== null) {
            ($this->onRead)(\strlen($bytes));
        }

        return $bytes;
    }

    public function eof(): bool
    {
        return $this->isAtEnd;
    }

    public function getSize(): ?int
    {
        $this->end = \PHP_INT_MAX;
        if (StreamSize::hasFilters() || !StreamSize::isCertain(stream_get_meta_data($this->resource))) {
            return null;
        }
        $size = fstat($this->resource)['size'] ?? null;
        if ($size === 0 && $this->secondReader()->read(1) !== '') {
            return null; // a file of /proc
        }

        return $size === null ? null : $this->end = max(0, $size - $this->start);
    }

    public function isSeekable(): bool
    {
        return true;
    }

    public function seek(int $offset, int $whence = \SEEK_SET): void
    {
        $this->position = $offset + match ($whence) {
            \SEEK_CUR => $this->position,
            \SEEK_END => $this->getSize() ?? throw new \RuntimeException('The size of the resource is unknown'),
            default => 0,
        };
        $this->isAtEnd = false;
    }

    public function close(): void {}
}

<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

use Psr\Http\Message\StreamInterface;
use Spindle\Http\Internal\Message\ReadOnlyStream;
use Spindle\Http\Internal\Message\StreamSize;

/**
 * A seekable resource of the caller, as the body of a request. The body has its own position, because the caller can
 * pass one resource to several requests. It does not close the resource.
 */
final class SymfonyFile implements StreamInterface
{
    use ReadOnlyStream;

    /** @var (\Closure(int): void)|null gets the number of bytes of each read */
    public ?\Closure $onRead = null;

    private int $position = 0;

    private bool $isAtEnd = false;

    /** @param resource $resource */
    public function __construct(private mixed $resource) {}

    /** @param resource $copy has the same bytes */
    public function replace(mixed $copy): void
    {
        $this->resource = $copy;
    }

    public function read(int $length): string
    {
        $isPositioned = ftell($this->resource) === $this->position || fseek($this->resource, $this->position) === 0;
        $bytes = $isPositioned ? fread($this->resource, max(1, $length)) : false;
        if ($bytes === false) {
            throw new \RuntimeException("the resource can't be read at the position {$this->position}");
        }
        $this->position += \strlen($bytes);
        $this->isAtEnd = feof($this->resource);
        if ($this->onRead !== null) {
            ($this->onRead)(\strlen($bytes));
        }

        return $bytes;
    }

    public function eof(): bool
    {
        return $this->isAtEnd;
    }

    public function tell(): int
    {
        return $this->position;
    }

    public function getSize(): ?int
    {
        return !StreamSize::hasFilters() && StreamSize::isCertain(stream_get_meta_data($this->resource))
            ? fstat($this->resource)['size'] ?? null
            : null;
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

<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Message;

use Psr\Http\Message\StreamInterface;

/**
 * Adds read() to a stream that can be read only by getContents(). Such streams are CallbackStream of laminas-diactoros,
 * and Nyholm's stream of a file that was opened in a mode unknown to Nyholm (`rbe`).
 */
final class ContentsStream implements StreamInterface
{
    use PositionedStream;

    /** All bytes; null before the first read, which calls getContents(). */
    private ?string $contents = null;

    private function __construct(private readonly StreamInterface $source) {}

    public static function of(StreamInterface $stream): StreamInterface
    {
        return $stream->isReadable() ? $stream : new self($stream);
    }

    public function getSize(): ?int
    {
        return StreamSize::of($this->source);
    }

    public function read(int $length): string
    {
        $bytes = substr($this->contents ??= $this->contents(), $this->position, $length);
        $this->position += \strlen($bytes);

        return $bytes;
    }

    public function eof(): bool
    {
        return $this->contents === null
            ? !$this->source->isSeekable() && $this->source->eof()
            : $this->position === \strlen($this->contents);
    }

    public function close(): void
    {
        [$this->contents, $this->position] = ['', 0];
        $this->source->close();
    }

    /** @throws \LengthException when the stream is longer than its getSize(), unless its file has grown */
    private function contents(): string
    {
        $size = $this->getSize();
        if ($this->source->isSeekable()) {
            $this->source->rewind();
        }
        $contents = $this->source->getContents();
        if ($size > 0 && \strlen($contents) > $size) {
            StreamSize::throwUnlessGrown($this->source, $size);
        }

        return $contents;
    }
}

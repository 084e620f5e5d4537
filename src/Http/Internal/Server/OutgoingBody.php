<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

use Psr\Http\Message\StreamInterface;
use Spindle\Http\Internal\Answer\EventStream;
use Spindle\Http\Internal\Message\IterableStream;
use Spindle\Internal\LoopTurn;

use function Amp\delay;

/** The body of an answer that is read while it is sent. */
final class OutgoingBody
{
    /** Bytes that are read at a time. */
    private const PIECE = 262_144;

    /** Nanoseconds after which other connections have their turn. */
    private const TURN = 5_000_000;

    /** Seconds after which a body is asked again that had nothing twice, and was not at its end; twice as long each time, up to the second. */
    private const PAUSE = 0.001;
    private const LONGEST_PAUSE = 0.1;

    /** Whether another answer may have the same body. */
    private readonly bool $seekable;

    public function __construct(private readonly StreamInterface $stream)
    {
        $this->seekable = $stream->isSeekable();
    }

    /** @throws \LogicException when there is nothing left of a body that can be read once */
    public function checkUnread(): void
    {
        if (!$this->seekable && $this->stream->eof() && $this->stream->getSize() !== 0) {
            throw new \LogicException('The body of the answer was read or closed before, and can be read only once');
        }
    }

    /**
     * The bytes to be sent. The next are read when they are asked for; "" where it had to wait for them.
     *
     * @param int|null $length  bytes; null when nobody knows it
     * @param bool     $chunked whether they are framed: RFC 9112, 7.1
     *
     * @return \Generator<int, string>
     *
     * @throws \LengthException when the body is shorter
     */
    public function pieces(?int $length, bool $chunked): \Generator
    {
        $sent = $empty = 0;
        $turn = hrtime(true);
        while ($sent !== $length && !$this->isAtEnd($sent)) {
            $size = $length === null ? self::PIECE : min(self::PIECE, $length - $sent);
            $piece = substr($this->stream->read($size), 0, $size);
            if ($piece === '') {
                yield '';
                $empty === 0 ? LoopTurn::await() : delay(min(self::LONGEST_PAUSE, self::PAUSE * 2 ** ($empty - 1)));
                ++$empty;
                $turn = hrtime(true);
                yield '';
                continue;
            }
            $empty = 0;
            $sent += \strlen($piece);
            yield $chunked ? dechex(\strlen($piece)) . "\r\n{$piece}\r\n" : $piece;
            if (hrtime(true) - $turn > self::TURN) {
                LoopTurn::await();
                $turn = hrtime(true);
                yield '';
            }
        }
        if ($length !== null && $sent < $length) {
            throw new \LengthException("The body of the answer has {$sent} bytes, and {$length} were announced");
        }
        if ($chunked) {
            yield "0\r\n\r\n";
        }
        IterableStream::finish($this->stream);
    }

    /** The server stops: events, which may come for ever, end here. Their client connects again by itself. */
    public function stop(): void
    {
        if ($this->stream instanceof EventStream) {
            $this->stream->close();
        }
    }

    /** What can be read again is left as it is. */
    public function close(): void
    {
        if (!$this->seekable) {
            $this->stream->close();
        }
    }

    /** @param int $position at which it was left; another answer with the same body may have moved it */
    private function isAtEnd(int $position): bool
    {
        if ($this->seekable && $this->stream->tell() !== $position) {
            $this->stream->seek($position);
        }

        return $this->stream->eof();
    }
}

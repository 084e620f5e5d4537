<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\StreamInterface;
use Spindle\Http\Internal\Answer\EventStream;
use Spindle\Http\Internal\Message\ContentsStream;
use Spindle\Http\Internal\Message\Head;
use Spindle\Http\Internal\Message\JoiningStream;
use Spindle\Http\Internal\Message\LengthExcess;
use Spindle\Http\Internal\Message\SingleReader;
use Spindle\Http\Internal\Message\StreamSize;
use Spindle\Internal\Async\Condition;
use Spindle\Internal\Async\LoopTurn;

final class OutgoingBody
{
    private const READ_BYTES = 262_144;

    private const MAX_COLLECTED_BYTES = 65_536;

    /** After this number of nanoseconds of sending, the event loop serves other connections. */
    private const TURN_NANOSECONDS = 5_000_000;

    /** Pause after two empty reads in a row. The pause doubles after each further one, up to the maximum. */
    private const MIN_PAUSE_SECONDS = 0.001;
    private const MAX_PAUSE_SECONDS = 0.1;

    /** Whether the body can be read again, for example by another response. */
    private readonly bool $seekable;

    /** Whether this response may read the body, and other responses may not. */
    private bool $isClaimed = false;

    private bool $mayClose = false;

    public ?int $length = null;
    /** Whether each piece is sent as a chunk: RFC 9112, 7.1. */
    private bool $chunked = false;
    public bool $mustBeSent = true;

    /** Set by {@see pieces()} if the body is longer than announced, at the latest after the last piece. */
    public ?LengthExcess $excess = null;

    private readonly StreamInterface $stream;

    private int $sent = 0;

    private int $collectUntil = 0;

    /** Number of calls of close() that have not returned. When this number becomes 0, $closed is notified. */
    private int $closeCalls = 0;
    private ?Condition $closed = null;

    public function __construct(StreamInterface $stream)
    {
        $this->stream = ContentsStream::of($stream);
        $this->seekable = $stream->isSeekable();
    }

    /**
     * Determines how the body is framed, and returns its {@see pieces()}.
     *
     * @return \Generator<int, string>
     *
     * @throws \LogicException when the body can be read only once, and was read or closed before, or is being sent
     */
    public function prepare(ResponseInterface $response, Head $head): \Generator
    {
        $allowsSeveralReaders = SingleReader::allowsSeveral($this->stream);
        $this->isClaimed = !$allowsSeveralReaders && SingleReader::claim($this->stream);
        $this->mayClose = !$this->seekable && $this->isClaimed;
        $isReadByOther = !$allowsSeveralReaders && !$this->isClaimed;
        $this->mustBeSent = ResponseWriter::hasBody($response->getStatusCode(), $head);
        if ($this->mustBeSent && $isReadByOther) {
            throw SingleReader::refusal();
        }
        $this->length = $isReadByOther && $this->seekable // length() would seek a stream that the other response reads
            ? null
            : ResponseWriter::length($response, $this->stream, $head);
        $this->chunked = $this->length === null && $head->version !== '1.0';
        if ($this->mustBeSent) {
            self::checkUnread($this->stream);
        }

        return $this->pieces($this->length, $this->chunked);
    }

    /** @throws \LogicException when the body can be read only once, and was read or closed before */
    public static function checkUnread(StreamInterface $stream): void
    {
        if (!$stream->isSeekable() && $stream->eof() && ($stream->getSize() !== 0 || StreamSize::hasMoved($stream))) {
            throw new \LogicException('The response body was read or closed before, and can be read only once');
        }
    }

    public function endsByClose(): bool
    {
        return $this->mustBeSent && $this->length === null && !$this->chunked;
    }

    /**
     * Sends the body, unless the response has none. Pieces that follow one another quickly are collected. They are sent
     * when they have enough bytes, after {@see JoiningStream::JOIN_NANOSECONDS}, or when this fiber suspends.
     *
     * @param \Generator<int, string> $pieces from {@see prepare()}
     */
    public function send(\Generator $pieces, TimedTransport $timed, Service $service): void
    {
        if (!$this->mustBeSent) {
            return;
        }
        $endsByClose = $this->endsByClose();
        if ($endsByClose) {
            $timed->transport->markIncomplete(true);
        }
        $timed->flushSoon();
        $timed->enterStream();
        $timed->body = $this;
        $hasSent = false;
        try {
            foreach ($pieces as $piece) {
                $service->killIfForked(); // a fork must not send a piece
                if ($piece !== '' && !$timed->closed) {
                    $timed->outgoing .= $piece;
                    if (hrtime(true) >= $this->collectUntil || \strlen($timed->outgoing) >= self::MAX_COLLECTED_BYTES) {
                        $timed->flushStream();
                        $hasSent = true;
                        $this->collectUntil = (int) hrtime(true) + JoiningStream::JOIN_NANOSECONDS;
                    }
                }
                if ($timed->closed) {
                    return;
                }
                $timed->flushSoon(); // in case this fiber suspends while it joins pieces
            }
        } catch (\Throwable $failure) {
            if ($hasSent) { // if no piece was sent, nothing is flushed, so that the caller can replace the response
                $service->killIfForked();
                $timed->flush();
            }
            throw $failure;
        } finally {
            $timed->body = null;
        }
        if ($hasSent) {
            $timed->flushStream();
        }
        if ($endsByClose && !$timed->closed) {
            $timed->transport->markIncomplete(false);
        }
    }

    /**
     * Yields the bytes to be sent. Each piece is read when the caller requests it.
     *
     * Yields "" before and after a wait for more of the body, and after other connections were served. So the caller
     * can check each time whether the connection is still open.
     *
     * @param int|null $length  bytes; null when unknown
     * @param bool     $chunked whether to yield the pieces as chunks: RFC 9112, 7.1
     *
     * @return \Generator<int, string>
     *
     * @throws \LengthException before the last piece if the body is longer than $length; at the end if it is shorter
     */
    public function pieces(?int $length, bool $chunked): \Generator
    {
        $empty = 0;
        $turnStart = hrtime(true);
        while ($this->sent !== $length && !$this->isAtEnd($this->sent)) {
            $piece = $this->readPiece($length);
            if ($piece === '') {
                yield '';
                $empty === 0
                    ? LoopTurn::await()
                    : (new Condition())->waitFor(
                        min(self::MAX_PAUSE_SECONDS, self::MIN_PAUSE_SECONDS * 2 ** ($empty - 1)),
                    );
                ++$empty;
                $turnStart = hrtime(true);
                yield '';
                continue;
            }
            $empty = 0;
            $piece = $this->framed($piece, $chunked);
            if ($this->sent === $length) {
                StreamSize::ensureAtEnd($this->stream, $length);
            }
            yield $piece;
            if ($this->sent !== $length && hrtime(true) - $turnStart > self::TURN_NANOSECONDS) {
                LoopTurn::await();
                $turnStart = hrtime(true);
                yield '';
            }
        }
        if ($length !== null && $this->sent < $length) {
            throw new \LengthException("The response body has {$this->sent} bytes instead of the announced {$length}");
        }
        if ($chunked) {
            yield "0\r\n\r\n";
        }
        $excess = LengthExcess::of($this->stream, $length);
        $this->excess ??= $excess;
    }

    private function readPiece(?int $length): string
    {
        $size = $length === null ? self::READ_BYTES : min(self::READ_BYTES, $length - $this->sent);
        $piece = $this->stream instanceof JoiningStream
            ? $this->stream->readJoined($size, $this->collectUntil)
            : $this->stream->read($size);
        $left = $length === null ? $size : $length - $this->sent; // another callback may have sent pieces since
        if ($length !== null && \strlen($piece) > $left) {
            $this->excess = new LengthExcess($length, $this->sent + \strlen($piece));
        }

        return substr($piece, 0, $left);
    }

    private function framed(string $piece, bool $chunked): string
    {
        $this->sent += \strlen($piece);

        return $chunked ? dechex(\strlen($piece)) . "\r\n{$piece}\r\n" : $piece;
    }

    /** Takes the bytes that {@see pieces()} joined before it suspended its fiber. Returns them framed; '' for none. */
    public function takeJoined(): string
    {
        $piece = $this->stream instanceof JoiningStream ? $this->stream->takeJoined() : '';
        $piece = $this->length === null ? $piece : substr($piece, 0, $this->length - $this->sent);

        return $piece === '' ? '' : $this->framed($piece, $this->chunked);
    }

    /** Ends an event stream when the server stops, because such a stream may have no end. The client reconnects. */
    public function stop(): void
    {
        if ($this->stream instanceof EventStream) {
            $this->stream->close();
        }
    }

    /** Closes the body unless it can be read again, or another response sends it. */
    public function close(): void
    {
        if (!$this->mayClose) {
            return;
        }
        ++$this->closeCalls;
        try {
            $this->stream->close();
        } finally {
            --$this->closeCalls === 0 ? $this->closed?->notify() : null;
        }
    }

    /** Calls {@see close()} after the last read, and lets other responses claim the body. Then close() does nothing. */
    public function end(): void
    {
        try {
            $this->close();
        } finally {
            $this->isClaimed ? SingleReader::release($this->stream) : null;
            $this->isClaimed = $this->mayClose = false;
        }
    }

    /** Returns whether the iterator of a closed body is still running: its `finally` blocks may suspend the fiber. */
    public function isEnding(): bool
    {
        return $this->closeCalls > 0 || $this->stream instanceof EventStream && $this->stream->isRunning;
    }

    public function awaitEnd(): void
    {
        if ($this->closeCalls > 0) {
            ($this->closed = new Condition())->wait();
        }
        $this->stream instanceof EventStream ? $this->stream->awaitEnd(\INF) : null;
    }

    /**
     * Returns whether all of the body was read. First seeks to $position, where this response stopped reading, because
     * another response with the same body may have changed the position.
     */
    private function isAtEnd(int $position): bool
    {
        if ($this->seekable && $this->stream->tell() !== $position) {
            $this->stream->seek($position);
        }

        return $this->stream->eof();
    }
}

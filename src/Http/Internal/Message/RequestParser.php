<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Message;

/**
 * Reads the requests of one connection: bytes in, heads and bodies out. It knows no stream, no loop and no clock.
 *
 * The verdict is the same however the bytes are split: lines are judged one after the other, each when its end has come,
 * and limits by the position at which they are passed.
 *
 * A head that has come whole and leaves nothing to decide is taken by one regular expression. It accepts a part of what
 * the way line by line accepts, says the same of it, and refuses nothing.
 *
 * @see https://www.rfc-editor.org/rfc/rfc9112 HTTP/1.1
 */
final class RequestParser
{
    /** A conditional group refuses the second field of a kind; one that looks back demands a Host field. */
    private const PLAIN_HEAD = '@\G(?!CONNECT )(' . HeadReader::TOKEN . ') (/[\x21\x22\x24-\x7e]*+) HTTP/1\.1\r\n((?:(?:'
        . '(?![CHTEUchteu])' . HeadReader::TOKEN . ':' . HeadReader::VALUE
        . '|(?!(?i:host|content-length|transfer-encoding|connection|expect|upgrade):)' . HeadReader::TOKEN . ':' . HeadReader::VALUE
        . '|(?i:host):[ \t]*+(?(4)(*FAIL))([A-Za-z0-9.\-]++(?::\d{1,5}+)?+)[ \t]*+'
        . '|(?i:content-length):[ \t]*+(?(5)(*FAIL))(\d{1,15}+)[ \t]*+'
        . '|(?i:connection):[ \t]*+(?i:keep-alive)[ \t]*+'
        . ')\r\n)++)(?(4)|(*FAIL))\r\n@';

    private string $buffer = '';

    /** Where in the buffer that begins which was not taken yet. */
    private int $offset = 0;

    /** What the lines of the head said that is coming in; null before its first line and in a body. */
    private ?HeadReader $reader = null;

    /** Bytes that are missing of a body whose length is known. */
    private int $missing = 0;

    /** Where the body comes in chunks. */
    private ?ChunkDecoder $chunks = null;

    /** Bytes of a head that is within all limits, whatever it has. */
    private readonly int $short;

    public function __construct(private readonly MessageLimits $limits)
    {
        $this->short = $limits->harmless();
    }

    public function push(string $bytes): void
    {
        $this->buffer = $this->offset === \strlen($this->buffer) ? $bytes : substr($this->buffer, $this->offset) . $bytes;
        $this->offset = 0;
    }

    /** Returns the method of the head that is being read, also of one that was refused; '' before it has come. */
    public function method(): string
    {
        $method = $this->reader?->method();
        if ($method !== '') {
            return $method ?? '';
        }

        return preg_match('@\G' . HeadReader::TOKEN . '(?= )@', $this->buffer, $match, 0, $this->offset) === 1 ? $match[0] : '';
    }

    /** Bytes that were received and not taken yet. */
    public function buffered(): int
    {
        return \strlen($this->buffer) - $this->offset;
    }

    /** Whether nothing was received that was not taken, so that the next byte begins a message. */
    public function isIdle(): bool
    {
        return $this->offset === \strlen($this->buffer) && ($this->reader === null || $this->reader->isBlank()) && $this->missing === 0 && ($this->chunks === null || $this->chunks->hasEnded());
    }

    /**
     * The next head, once it is there. What was not taken of the body before is skipped.
     *
     * @throws BadMessageException
     */
    public function head(): ?Head
    {
        if ($this->offset === \strlen($this->buffer)) {
            return null;
        }
        if (($this->missing !== 0 || $this->chunks !== null) && (!$this->skipBody() || $this->buffered() === 0)) {
            return null;
        }
        if ($this->reader === null && preg_match(self::PLAIN_HEAD, $this->buffer, $match, 0, $this->offset) === 1
            && (\strlen($match[0]) <= $this->short || $this->limits->allow($match[0], $match[3], $match[2]))) {
            $this->offset += \strlen($match[0]);
            $head = new Head();
            [, $head->method, $head->target, $head->fields, $head->host] = $match;
            if (!isset($match[5])) {
                return $head;
            }
            $head->length = (int) $match[5];
        } else {
            $head = $this->headByLines();
        }
        if ($head !== null && $head->length !== 0) {
            $this->missing = $head->length ?? 0;
            $this->chunks = $head->length === null ? new ChunkDecoder($this->limits) : null;
        }

        return $head;
    }

    /**
     * What is there of the body, which may be nothing.
     *
     * @throws BadMessageException
     */
    public function body(): string
    {
        if ($this->chunks !== null) {
            return $this->chunks->decode($this->buffer, $this->offset);
        }
        if ($this->missing === 0) {
            return '';
        }
        $bytes = substr($this->buffer, $this->offset, $this->missing);
        $this->offset += \strlen($bytes);
        $this->missing -= \strlen($bytes);

        return $bytes;
    }

    /** The body of a length, where nothing of it was taken and all of it has come. */
    public function wholeBody(?int $length): ?string
    {
        if ($this->missing !== $length || $length > \strlen($this->buffer) - $this->offset) {
            return null;
        }
        $body = substr($this->buffer, $this->offset, $length);
        $this->offset += $length;
        $this->missing = 0;

        return $body;
    }

    /** Whether the body was taken to its end. */
    public function bodyEnded(): bool
    {
        return $this->missing === 0 && ($this->chunks === null || $this->chunks->hasEnded());
    }

    /** Whether all of the body has come, taken or not. */
    public function holdsBody(): bool
    {
        return $this->endOfBody() !== null;
    }

    /** Whether behind all of the body another head has come. */
    public function holdsHead(): bool
    {
        $end = $this->endOfBody();

        return $end !== null && strpos($this->buffer, "\r\n\r\n", $end) !== false;
    }

    /** Bytes of the body that are still to come; null when nobody knows. */
    public function missing(): ?int
    {
        return $this->chunks === null ? $this->missing : null;
    }

    /** The field lines that came after the last chunk. */
    public function trailers(): string
    {
        return $this->chunks?->trailers() ?? '';
    }

    /** @return int|null where in the buffer; null when it has not come, or is malformed */
    private function endOfBody(): ?int
    {
        if ($this->chunks === null) {
            return $this->missing <= $this->buffered() ? $this->offset + $this->missing : null;
        }
        [$chunks, $end] = [clone $this->chunks, $this->offset];
        try {
            $chunks->decode($this->buffer, $end);
        } catch (BadMessageException) {
            return null;
        }

        return $chunks->hasEnded() ? $end : null;
    }

    /**
     * @return bool whether it has ended
     *
     * @throws BadMessageException
     */
    private function skipBody(): bool
    {
        $this->body();
        if (!$this->bodyEnded()) {
            return false;
        }
        $this->chunks = null;

        return true;
    }

    /** @throws BadMessageException */
    private function headByLines(): ?Head
    {
        $this->reader ??= new HeadReader($this->limits);
        do {
            $end = strpos($this->buffer, "\n", $this->offset);
            if ($end === false) {
                $this->reader->expect(\strlen($this->buffer) - $this->offset);

                return null;
            }
            $head = $this->reader->line(substr($this->buffer, $this->offset, $end + 1 - $this->offset));
            $this->offset = $end + 1; // a line that is refused stays for method()
        } while ($head === null);
        $this->reader = null;

        return $head;
    }
}

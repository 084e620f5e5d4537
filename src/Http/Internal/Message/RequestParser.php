<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Message;

/**
 * Turns the received bytes of one connection into heads and bodies. Uses no stream, no event loop and no clock.
 *
 * The result does not depend on how the bytes are split into calls of {@see push()}. Each line is checked when it is
 * complete. A message is refused at the first byte that exceeds a limit.
 *
 * Heads that arrive as a whole and match {@see PLAIN_HEAD_PATTERN} are parsed by this regular expression. Heads that
 * arrive in parts, do not match or may exceed a limit are parsed line by line ({@see HeadReader}). If both ways of
 * parsing accept a head, their results are equal.
 *
 * @see https://www.rfc-editor.org/rfc/rfc9112 HTTP/1.1
 */
final class RequestParser
{
    /**
     * Groups: method, target, fields, Host, Content-Length. "(?(4)(*FAIL))" refuses a second Host field, and
     * "(?(5)(*FAIL))" a second Content-Length. "(?(4)|(*FAIL))" requires a Host field. "[iI]" matches both letters even
     * after setlocale() with a Turkish locale, in which they are different letters.
     */
    private const PLAIN_HEAD_PATTERN = '@\G(?!CONNECT )('
        . HeadReader::TOKEN
        . ') (/[\x21\x22\x24-\x7e]*+) HTTP/1\.1\r\n((?:(?:'
        . '(?![CHTEUchteu])' . HeadReader::TOKEN . ':' . HeadReader::VALUE
        . '|(?!(?i:host|content-length|transfer-encod[iI]ng|connect[iI]on|expect|upgrade):)'
        . HeadReader::TOKEN
        . ':'
        . HeadReader::VALUE
        . '|(?i:host):[ \t]*+(?(4)(*FAIL))([A-Za-z0-9.\-]++(?::\d{1,5}+)?+)[ \t]*+'
        . '|(?i:content-length):[ \t]*+(?(5)(*FAIL))(\d{1,15}+)[ \t]*+'
        . '|(?i:connect[iI]on):[ \t]*+(?i:keep-alive)[ \t]*+'
        . ')\r\n)++)(?(4)|(*FAIL))\r\n@';

    private string $buffer = '';

    private int $offset = 0;

    /** Reader of a head that has arrived in part or was refused; null if there is no such head. */
    private ?HeadReader $reader = null;

    /** Number of body bytes that were not consumed, including those that have not arrived; 0 for a chunked body. */
    private int $remaining = 0;

    private ?ChunkDecoder $chunks = null;

    /** A head of at most this number of bytes is within all limits, whatever its content. */
    private readonly int $alwaysAllowedBytes;

    public function __construct(private readonly MessageLimits $limits)
    {
        $this->alwaysAllowedBytes = $limits->alwaysAllowedBytes();
    }

    public function push(string $bytes): void
    {
        $this->buffer = $this->offset === \strlen($this->buffer)
            ? $bytes
            : substr($this->buffer, $this->offset) . $bytes;
        $this->offset = 0;
    }

    /** Returns the method of the incomplete or refused head; '' without such a head, or before the method arrives. */
    public function method(): string
    {
        $method = $this->reader?->method;
        if ($method !== '') {
            return $method ?? '';
        }

        return preg_match('@\G' . HeadReader::TOKEN . '(?= )@', $this->buffer, $match, 0, $this->offset) === 1
            ? $match[0]
            : '';
    }

    public function buffered(): int
    {
        return \strlen($this->buffer) - $this->offset;
    }

    /** Returns whether all received bytes were consumed, and the next byte begins a message. */
    public function isIdle(): bool
    {
        return $this->offset === \strlen($this->buffer)
            && ($this->reader === null || $this->reader->isBlank())
            && $this->remaining === 0
            && ($this->chunks === null || $this->chunks->hasEnded);
    }

    /**
     * Discards the rest of the previous body. Consumes and returns the next head; null until that head is complete.
     *
     * @throws BadMessageException
     */
    public function readHead(): ?Head
    {
        if ($this->offset === \strlen($this->buffer)) {
            return null;
        }
        $hasBody = $this->remaining !== 0 || $this->chunks !== null;
        if ($hasBody && (!$this->skipBody() || $this->buffered() === 0)) {
            return null;
        }
        if (
            $this->reader === null
            && preg_match(self::PLAIN_HEAD_PATTERN, $this->buffer, $match, 0, $this->offset) === 1
            && (
                \strlen($match[0]) <= $this->alwaysAllowedBytes
                || $this->limits->allow($match[0], $match[3], $match[2])
            )
        ) {
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
            $this->remaining = $head->length ?? 0;
            $this->chunks = $head->length === null ? new ChunkDecoder($this->limits) : null;
        }

        return $head;
    }

    /**
     * Consumes and returns the received bytes of the body; '' when there are none.
     *
     * @throws BadMessageException
     */
    public function readBody(): string
    {
        if ($this->chunks !== null) {
            return $this->chunks->decode($this->buffer, $this->offset);
        }
        if ($this->remaining === 0) {
            return '';
        }
        $bytes = substr($this->buffer, $this->offset, $this->remaining);
        $this->offset += \strlen($bytes);
        $this->remaining -= \strlen($bytes);

        return $bytes;
    }

    /** Consumes and returns the body of $length bytes; null if the body is chunked, incomplete or partly consumed. */
    public function readWholeBody(?int $length): ?string
    {
        if ($this->remaining !== $length || $length > \strlen($this->buffer) - $this->offset) {
            return null;
        }
        $body = substr($this->buffer, $this->offset, $length);
        $this->offset += $length;
        $this->remaining = 0;

        return $body;
    }

    public function bodyEnded(): bool
    {
        return $this->remaining === 0 && ($this->chunks === null || $this->chunks->hasEnded);
    }

    /** Returns whether the last byte of the body has arrived. Earlier bytes may have been consumed already. */
    public function holdsBody(): bool
    {
        return $this->endOfBody() !== null;
    }

    /** Returns whether the body and the whole head after it have arrived. */
    public function holdsHead(): bool
    {
        $end = $this->endOfBody();

        return $end !== null && strpos($this->buffer, "\r\n\r\n", $end) !== false;
    }

    /** Returns how many body bytes were not consumed, including those to come; null for a chunked body. */
    public function remaining(): ?int
    {
        return $this->chunks === null ? $this->remaining : null;
    }

    public function trailers(): string
    {
        return $this->chunks->trailers ?? '';
    }

    /** @return int|null offset in the buffer; null when the end was not received or is malformed */
    private function endOfBody(): ?int
    {
        if ($this->chunks === null) {
            return $this->remaining <= $this->buffered() ? $this->offset + $this->remaining : null;
        }
        [$chunks, $end] = [clone $this->chunks, $this->offset];
        try {
            $chunks->decode($this->buffer, $end);
        } catch (BadMessageException) {
            return null;
        }

        return $chunks->hasEnded ? $end : null;
    }

    private function skipBody(): bool
    {
        $this->readBody();
        if (!$this->bodyEnded()) {
            return false;
        }
        $this->chunks = null;

        return true;
    }

    private function headByLines(): ?Head
    {
        $this->reader ??= new HeadReader($this->limits);
        do {
            $end = strpos($this->buffer, "\n", $this->offset);
            if ($end === false) {
                $this->reader->checkSize(\strlen($this->buffer) - $this->offset);

                return null;
            }
            $head = $this->reader->addLine(substr($this->buffer, $this->offset, $end + 1 - $this->offset));
            $this->offset = $end + 1; // after addLine(), so that method() can read this line if addLine() throws
        } while ($head === null);
        $this->reader = null;

        return $head;
    }
}

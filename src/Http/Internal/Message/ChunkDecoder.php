<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Message;

/** Decodes a chunked body and its trailer section: RFC 9112, 7.1. */
final class ChunkDecoder
{
    private const SIZE_LINE_PATTERN = '@^([0-9A-Fa-f]{1,15}+)((?:[ \t]*+;[ \t]*+' . HeadReader::TOKEN
        . '(?:[ \t]*+=[ \t]*+(?:' . HeadReader::TOKEN . '|' . HeadReader::QUOTED . '))?+)*+)$@D';

    private const FIELD_LINE_PATTERN = '@^' . HeadReader::TOKEN . ':' . HeadReader::VALUE . '$@D';

    /** Maximum of {@see $excessExtensionBytes}. Extensions are ignored, so more of them would only waste CPU time. */
    private const MAX_EXCESS_EXTENSION_BYTES = 16_384;

    private const MAX_SIZE_DIGITS = 15;

    /** Undecoded bytes of a chunk's data. 0: the CRLF after the data follows. Null: a size or trailer line follows. */
    private ?int $remaining = null;

    /** Whether the last chunk, which has the size 0, was decoded. Then the trailer section follows. */
    private bool $isInTrailers = false;

    public bool $hasEnded = false;

    /** Sum over the chunks so far: bytes of extensions minus bytes of data. The sum never falls below 0. */
    private int $excessExtensionBytes = 0;

    public string $trailers = '';
    private int $trailerCount = 0;

    public function __construct(private readonly MessageLimits $limits) {}

    /**
     * Returns the data of chunks in the buffer, up to the end of the body.
     *
     * @param int $offset offset of the first byte to decode in the buffer; set to the end of the decoded bytes
     *
     * @throws BadMessageException
     */
    public function decode(string $buffer, int &$offset): string
    {
        $body = '';
        while (!$this->hasEnded && $offset < \strlen($buffer)) {
            if ($this->remaining !== null && $this->remaining > 0) {
                $bytes = substr($buffer, $offset, $this->remaining);
                $offset += \strlen($bytes);
                $this->remaining -= \strlen($bytes);
                $body .= $bytes;
                continue;
            }
            $line = self::line($buffer, $offset);
            $line === null ? $this->checkIncompleteLine($buffer, $offset) : $this->handleLine($line);
            if ($line === null) {
                break;
            }
            $offset += \strlen($line);
        }

        return $body;
    }

    private static function line(string $buffer, int $offset): ?string
    {
        $end = strpos($buffer, "\n", $offset);

        return $end === false ? null : substr($buffer, $offset, $end + 1 - $offset);
    }

    /** @throws BadMessageException when the line is already too long, or no line end follows the data of a chunk */
    private function checkIncompleteLine(string $buffer, int $offset): void
    {
        $bytes = \strlen($buffer) - $offset;
        if ($this->remaining === 0) {
            self::checkDataEnd(substr($buffer, $offset, 2));
        } elseif ($this->isInTrailers) {
            $this->limits->checkSection(\strlen($this->trailers) + $bytes, 0);
        } else {
            $this->checkExtensions($bytes);
        }
    }

    private function handleLine(string $line): void
    {
        if ($this->remaining === 0) {
            self::checkDataEnd($line);
            $this->remaining = null;

            return;
        }
        $this->isInTrailers
            ? $this->limits->checkSection(\strlen($this->trailers) + \strlen($line), 0)
            : $this->checkExtensions(\strlen($line));
        if (!str_ends_with($line, "\r\n")) {
            throw BadMessageException::malformed('A line between chunks ends without CR');
        }
        $this->isInTrailers ? $this->readTrailer(substr($line, 0, -2)) : $this->readSize(substr($line, 0, -2));
    }

    private static function checkDataEnd(string $bytes): void
    {
        if (!str_starts_with("\r\n", substr($bytes, 0, 2)) || \strlen($bytes) > 2) {
            throw BadMessageException::malformed('The data of a chunk does not end where its size says');
        }
    }

    private function readSize(string $line): void
    {
        if (preg_match(self::SIZE_LINE_PATTERN, $line, $match) !== 1) {
            throw BadMessageException::malformed('The size of a chunk is malformed');
        }
        $size = (int) hexdec($match[1]);
        $this->excessExtensionBytes = max(0, $this->excessExtensionBytes + \strlen($match[2]) - $size);
        $this->isInTrailers = $size === 0;
        $this->remaining = $this->isInTrailers ? null : $size;
    }

    /** @param int $line bytes of the current size line that have arrived, including the digits of the size */
    private function checkExtensions(int $line): void
    {
        if ($this->excessExtensionBytes + $line > self::MAX_EXCESS_EXTENSION_BYTES + self::MAX_SIZE_DIGITS) {
            throw BadMessageException::malformed(
                'The extensions of chunks are longer than their data by more than '
                    . self::MAX_EXCESS_EXTENSION_BYTES
                    . ' bytes',
            );
        }
    }

    private function readTrailer(string $line): void
    {
        if ($line === '') {
            $this->hasEnded = true;

            return;
        }
        $this->limits->checkSection(\strlen($this->trailers), ++$this->trailerCount);
        if (preg_match(self::FIELD_LINE_PATTERN, $line) !== 1) {
            throw BadMessageException::malformed('A trailer field is malformed');
        }
        $this->trailers .= "{$line}\r\n";
    }
}

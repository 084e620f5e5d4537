<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Message;

/**
 * Decodes a body in chunks.
 *
 * @see https://www.rfc-editor.org/rfc/rfc9112#section-7.1
 */
final class ChunkDecoder
{
    private const SIZE_LINE_PATTERN = '@^([0-9A-Fa-f]{1,15}+)((?:[ \t]*+;[ \t]*+' . HeadReader::TOKEN
        . '(?:[ \t]*+=[ \t]*+(?:' . HeadReader::TOKEN . '|' . HeadReader::QUOTED . '))?+)*+)$@D';

    private const FIELD_LINE_PATTERN = '@^' . HeadReader::TOKEN . ':' . HeadReader::VALUE . '$@D';

    /** Maximum bytes of chunk extensions. More of them would only keep the server busy. */
    private const MAX_EXTENSION_BYTES = 16_384;

    private const MAX_SIZE_DIGITS = 15;

    /** Missing bytes of the current chunk; null in the line with its size and in the trailer section. */
    private ?int $missing = null;

    private bool $last = false;
    private bool $ended = false;
    private int $extensions = 0;
    private string $trailers = '';
    private int $fields = 0;

    public function __construct(private readonly MessageLimits $limits) {}

    /**
     * @param int $offset in the buffer; moved behind the decoded bytes
     *
     * @throws BadMessageException
     */
    public function decode(string $buffer, int &$offset): string
    {
        $body = '';
        while (!$this->ended && $offset < \strlen($buffer)) {
            if ($this->missing !== null && $this->missing > 0) {
                $bytes = substr($buffer, $offset, $this->missing);
                $offset += \strlen($bytes);
                $this->missing -= \strlen($bytes);
                $body .= $bytes;
                continue;
            }
            $line = self::line($buffer, $offset);
            $line === null ? $this->expect($buffer, $offset) : $this->handleLine($line);
            if ($line === null) {
                break;
            }
            $offset += \strlen($line);
        }

        return $body;
    }

    public function hasEnded(): bool
    {
        return $this->ended;
    }

    public function trailers(): string
    {
        return $this->trailers;
    }

    /** Returns the line with its end; null while the end is missing. */
    private static function line(string $buffer, int $offset): ?string
    {
        $end = strpos($buffer, "\n", $offset);

        return $end === false ? null : substr($buffer, $offset, $end + 1 - $offset);
    }

    /** @throws BadMessageException when an incomplete line is already too long */
    private function expect(string $buffer, int $offset): void
    {
        $bytes = \strlen($buffer) - $offset;
        if ($this->missing === 0) {
            self::checkDataEnd(substr($buffer, $offset, 2));
        } elseif ($this->last) {
            $this->limits->checkSection(\strlen($this->trailers) + $bytes, 0);
        } else {
            $this->checkExtensions($bytes);
        }
    }

    /** @throws BadMessageException */
    private function handleLine(string $line): void
    {
        if ($this->missing === 0) {
            self::checkDataEnd($line);
            $this->missing = null;

            return;
        }
        $this->last
            ? $this->limits->checkSection(\strlen($this->trailers) + \strlen($line), 0)
            : $this->checkExtensions(\strlen($line));
        if (!str_ends_with($line, "\r\n")) {
            throw BadMessageException::malformed('A line between chunks ends without CR');
        }
        $this->last ? $this->trailer(substr($line, 0, -2)) : $this->size(substr($line, 0, -2));
    }

    /** @throws BadMessageException */
    private static function checkDataEnd(string $bytes): void
    {
        if (!str_starts_with("\r\n", substr($bytes, 0, 2)) || \strlen($bytes) > 2) {
            throw BadMessageException::malformed('The data of a chunk does not end where its size says');
        }
    }

    /** @throws BadMessageException */
    private function size(string $line): void
    {
        if (preg_match(self::SIZE_LINE_PATTERN, $line, $match) !== 1) {
            throw BadMessageException::malformed('The size of a chunk is malformed');
        }
        $size = (int) hexdec($match[1]);
        $this->extensions = max(0, $this->extensions + \strlen($match[2]) - $size);
        $this->last = $size === 0;
        $this->missing = $this->last ? null : $size;
    }

    /** @throws BadMessageException */
    private function checkExtensions(int $line): void
    {
        if ($this->extensions + $line > self::MAX_EXTENSION_BYTES + self::MAX_SIZE_DIGITS) {
            throw BadMessageException::malformed(
                'The extensions of chunks are longer than their data by more than '
                    . self::MAX_EXTENSION_BYTES
                    . ' bytes',
            );
        }
    }

    /** @throws BadMessageException */
    private function trailer(string $line): void
    {
        if ($line === '') {
            $this->ended = true;

            return;
        }
        $this->limits->checkSection(\strlen($this->trailers), ++$this->fields);
        if (preg_match(self::FIELD_LINE_PATTERN, $line) !== 1) {
            throw BadMessageException::malformed('A trailer field is malformed');
        }
        $this->trailers .= "{$line}\r\n";
    }
}

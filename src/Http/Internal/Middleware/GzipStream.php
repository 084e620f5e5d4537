<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Middleware;

use Psr\Http\Message\StreamInterface;
use Spindle\Http\Internal\Message\ContentsStream;
use Spindle\Http\Internal\Message\JoiningStream;
use Spindle\Http\Internal\Message\LengthExcess;
use Spindle\Http\Internal\Message\PositionedStream;
use Spindle\Http\Internal\Message\SingleReader;
use Spindle\Http\Internal\Message\StreamSize;

/** Compresses a body while it is read. Flushes each piece if the size is unknown, so that the piece is sent at once. */
final class GzipStream implements JoiningStream
{
    use PositionedStream;

    private const READ_BYTES = 16_384;

    /** Maximum bytes that one read() compresses. zlib can consume megabytes of zeros before it returns a byte. */
    private const MAX_INPUT_BYTES_PER_READ = 262_144;

    private readonly int $flush;

    /** Whether the source is seekable. If so, other code may move its position between two reads of this stream. */
    private readonly bool $seekable;

    private readonly bool $allowsSeveralReaders;

    /** Whether this stream may read the source, and close it unless it is seekable; null before the first read. */
    private ?bool $ownsSource = null;

    private bool $isReading = false;

    private ?\DeflateContext $deflate = null;

    private int $inputBytes = 0;

    /** Time by hrtime() until which the current read joins pieces of the source. */
    private int $joinUntil = 0;

    private bool $ended = false;

    private string $output = '';

    private int $offset = 0;

    private ?LengthExcess $excess = null;

    private readonly StreamInterface $source;

    /**
     * @param StreamInterface $source a seekable source is read from its beginning and left open; another source is
     *     read from its current position, and closed together with this stream
     * @param int|null $size bytes to read from the source; null to read to its end
     */
    public function __construct(StreamInterface $source, private readonly ?int $size, private readonly int $level)
    {
        $this->source = ContentsStream::of($source);
        $this->flush = $size === null ? \ZLIB_SYNC_FLUSH : \ZLIB_NO_FLUSH;
        $this->seekable = $source->isSeekable();
        $this->allowsSeveralReaders = $this->seekable && SingleReader::allowsSeveral($this->source);
    }

    /**
     * Returns '' only when the source has ended, or has no bytes at present.
     *
     * @throws \LengthException when the source is shorter than $size, or longer than the size that it reports.
     *         Without the exception, the client would regard the truncated body as complete
     */
    public function read(int $length): string
    {
        $maxInput = $this->inputBytes + self::MAX_INPUT_BYTES_PER_READ;
        while ($this->offset === \strlen($this->output) && !$this->ended && $this->inputBytes < $maxInput) {
            $bytes = $this->readSource();
            if ($bytes === null) {
                break;
            }
            $this->compress($bytes, $this->inputBytes < $maxInput ? $this->flush : \ZLIB_SYNC_FLUSH);
        }
        $bytes = substr($this->output, $this->offset, $length);
        $this->offset += \strlen($bytes);
        $this->position += \strlen($bytes);

        return $bytes;
    }

    public function readJoined(int $length, int $until): string
    {
        $this->joinUntil = $until;
        try {
            return $this->read($length);
        } finally {
            $this->joinUntil = 0;
        }
    }

    public function takeJoined(): string
    {
        $this->joinUntil = 0;
        $isJoining = $this->ownsSource === true && $this->source instanceof JoiningStream;
        $bytes = $isJoining ? $this->source->takeJoined() : '';
        if ($bytes === '') {
            return '';
        }
        $this->inputBytes += \strlen($bytes);
        $this->compress($bytes, $this->flush);
        [$bytes, $this->output] = [$this->output, ''];
        $this->position += \strlen($bytes);

        return $bytes;
    }

    public function excess(?int $length): ?LengthExcess
    {
        return $this->excess;
    }

    public function eof(): bool
    {
        return $this->ended && $this->offset === \strlen($this->output);
    }

    public function close(): void
    {
        [$this->ended, $this->deflate, $this->output, $this->offset] = [true, null, '', 0];
        if (!$this->allowsSeveralReaders && $this->ownsSource()) {
            $this->seekable ? null : $this->source->close();
            $this->isReading ? null : SingleReader::release($this->source);
            $this->ownsSource = $this->isReading; // if a read is in progress, a later close() releases the source
        }
    }

    private function ownsSource(): bool
    {
        return $this->ownsSource ??= $this->allowsSeveralReaders || SingleReader::claim($this->source);
    }

    /** @return string|null '' at the end; null when there are no bytes at present */
    private function readSource(): ?string
    {
        $this->ownsSource() || throw SingleReader::refusal();
        if ($this->inputBytes === $this->size) {
            if (!$this->ended) {
                StreamSize::ensureAtEnd($this->source, $this->size);
            }
            $excess = LengthExcess::of($this->source, $this->size);
            $this->excess ??= $excess;

            return '';
        }
        if ($this->seekable && $this->source->tell() !== $this->inputBytes) {
            $this->source->seek($this->inputBytes);
        }
        $length = $this->size === null ? self::READ_BYTES : min(self::READ_BYTES, $this->size - $this->inputBytes);
        $this->isReading = true;
        try {
            $bytes = $this->source instanceof JoiningStream
                ? $this->source->readJoined($length, $this->joinUntil)
                : $this->source->read($length);
        } finally {
            $this->isReading = false;
        }
        if ($this->size !== null && \strlen($bytes) > $length) {
            $this->excess = new LengthExcess($this->size, $this->inputBytes + \strlen($bytes));
        }
        $bytes = substr($bytes, 0, $length);
        $this->inputBytes += \strlen($bytes);
        if ($bytes === '' && !$this->source->eof()) {
            return null;
        }
        if ($bytes === '' && !$this->ended && $this->inputBytes < $this->size) {
            throw new \LengthException("The body has {$this->inputBytes} bytes instead of the announced {$this->size}");
        }

        return $bytes;
    }

    /** @param string $bytes '' for the end */
    private function compress(string $bytes, int $flush): void
    {
        if ($this->ended) {
            return; // close() was called while the source was read
        }
        $this->deflate ??= self::newDeflate($this->level);
        $this->ended = $bytes === '';
        $this->output = (string) deflate_add($this->deflate, $bytes, $this->ended ? \ZLIB_FINISH : $flush);
        $this->offset = 0;
        $this->deflate = $this->ended ? null : $this->deflate;
    }

    private static function newDeflate(int $level): \DeflateContext
    {
        $deflate = deflate_init(\ZLIB_ENCODING_GZIP, ['level' => $level]);

        return $deflate === false ? throw new \RuntimeException('zlib could not allocate memory') : $deflate;
    }
}

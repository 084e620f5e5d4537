<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Middleware;

use Psr\Http\Message\StreamInterface;
use Spindle\Http\Internal\Message\ForwardOnly;
use Spindle\Http\Internal\Message\IterableStream;

/** A body that is compressed while it is read. What a body without a known length gives at one read can be uncompressed at once. */
final class GzipStream implements StreamInterface
{
    use ForwardOnly;

    /** Bytes that are read at once. */
    private const PIECE = 16_384;

    /** Bytes that one read compresses at most; zlib itself would take megabytes of zeros before it gives anything. */
    private const AT_ONCE = 262_144;

    private readonly int $flush;

    /** Whether others may read the source, too, before, meanwhile and after. */
    private readonly bool $seekable;

    private ?\DeflateContext $deflate = null;

    /** Bytes of the source that were read. */
    private int $taken = 0;

    /** Whether all that comes of the source is in $rest, or nobody wants it any more. */
    private bool $ended = false;

    private string $rest = '';

    /** Where in $rest that begins which was not read yet. */
    private int $offset = 0;

    private int $position = 0;

    /**
     * @param StreamInterface $source read from its beginning, and left open, if it is seekable: wherever others leave it meanwhile;
     *                                any other is read from where it stands, and closed with this one
     * @param int|null        $size   bytes that the source must have, and that are taken of it; null when nobody knows
     */
    public function __construct(private readonly StreamInterface $source, private readonly ?int $size, private readonly int $level)
    {
        $this->flush = $size === null ? \ZLIB_SYNC_FLUSH : \ZLIB_NO_FLUSH;
        $this->seekable = $source->isSeekable();
    }

    /**
     * Gives something unless it is at the end, or the source has nothing yet.
     *
     * @throws \LengthException when the source is shorter than it said: what was compressed must not be taken for whole
     */
    public function read(int $length): string
    {
        $enough = $this->taken + self::AT_ONCE;
        while ($this->offset === \strlen($this->rest) && !$this->ended && $this->taken < $enough) {
            $bytes = $this->take();
            if ($bytes === null) {
                break;
            }
            $this->compress($bytes, $this->taken < $enough ? $this->flush : \ZLIB_SYNC_FLUSH);
        }
        $bytes = substr($this->rest, $this->offset, $length);
        $this->offset += \strlen($bytes);
        $this->position += \strlen($bytes);

        return $bytes;
    }

    public function eof(): bool
    {
        return $this->ended && $this->offset === \strlen($this->rest);
    }

    public function tell(): int
    {
        return $this->position;
    }

    public function close(): void
    {
        [$this->ended, $this->deflate, $this->rest, $this->offset] = [true, null, '', 0];
        if (!$this->seekable) {
            $this->source->close();
        }
    }

    /** @return string|null '' at the end; null when there is nothing yet */
    private function take(): ?string
    {
        if ($this->taken === $this->size) {
            IterableStream::finish($this->source);

            return '';
        }
        if ($this->seekable && $this->source->tell() !== $this->taken) {
            $this->source->seek($this->taken);
        }
        $length = $this->size === null ? self::PIECE : min(self::PIECE, $this->size - $this->taken);
        $bytes = substr($this->source->read($length), 0, $length);
        $this->taken += \strlen($bytes);
        if ($bytes === '' && !$this->source->eof()) {
            return null;
        }
        if ($bytes === '' && !$this->ended && $this->taken < $this->size) {
            throw new \LengthException("The body has {$this->taken} bytes, not the {$this->size} that it said");
        }

        return $bytes;
    }

    /** @param string $bytes '' for the end */
    private function compress(string $bytes, int $flush): void
    {
        if ($this->ended) {
            return; // it was closed meanwhile
        }
        $this->deflate ??= self::begin($this->level);
        $this->ended = $bytes === '';
        $this->rest = (string) deflate_add($this->deflate, $bytes, $this->ended ? \ZLIB_FINISH : $flush);
        $this->offset = 0;
        $this->deflate = $this->ended ? null : $this->deflate;
    }

    private static function begin(int $level): \DeflateContext
    {
        $deflate = deflate_init(\ZLIB_ENCODING_GZIP, ['level' => $level]);

        return $deflate === false ? throw new \RuntimeException('zlib has no memory to compress with') : $deflate;
    }
}

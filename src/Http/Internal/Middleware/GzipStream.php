<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Middleware;

use Psr\Http\Message\StreamInterface;
use Spindle\Http\Internal\Message\ForwardOnly;

/** A body that is compressed while it is read. What a body without a known length gives at one read can be uncompressed at once. */
final class GzipStream implements StreamInterface
{
    use ForwardOnly;

    /** Bytes that are read at once. */
    private const PIECE = 16_384;

    private readonly int $flush;
    private ?\DeflateContext $deflate = null;

    /** Whether all that comes of the source is in $rest, or nobody wants it any more. */
    private bool $ended = false;

    private string $rest = '';

    /** Where in $rest that begins which was not read yet. */
    private int $offset = 0;

    private int $position = 0;

    /** @param StreamInterface $source is read from where it stands, and closed with this one */
    public function __construct(private readonly StreamInterface $source, private readonly int $level)
    {
        $this->flush = $source->getSize() === null ? \ZLIB_SYNC_FLUSH : \ZLIB_NO_FLUSH;
    }

    public function read(int $length): string
    {
        while ($this->offset === \strlen($this->rest) && !$this->ended) {
            $bytes = $this->source->read(self::PIECE);
            if ($bytes === '' && !$this->source->eof()) {
                break;
            }
            $this->compress($bytes);
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
        $this->source->close();
    }

    /** @param string $bytes '' for the end */
    private function compress(string $bytes): void
    {
        if ($this->ended) {
            return; // it was closed meanwhile
        }
        $this->deflate ??= self::begin($this->level);
        $this->ended = $bytes === '';
        $this->rest = (string) deflate_add($this->deflate, $bytes, $this->ended ? \ZLIB_FINISH : $this->flush);
        $this->offset = 0;
        $this->deflate = $this->ended ? null : $this->deflate;
    }

    private static function begin(int $level): \DeflateContext
    {
        $deflate = deflate_init(\ZLIB_ENCODING_GZIP, ['level' => $level]);

        return $deflate === false ? throw new \RuntimeException('zlib has no memory to compress with') : $deflate;
    }
}

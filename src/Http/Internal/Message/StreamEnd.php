<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Message;

use Psr\Http\Message\StreamInterface;

/** Finds streams that are longer than their size. For a file with a filter, PHP reports the size before the filter. */
final class StreamEnd
{
    private function __construct() {}

    /**
     * Checks a stream of which as many bytes as its size were read.
     *
     * @throws \LengthException see {@see throwUnlessGrown()}
     */
    public static function check(StreamInterface $stream, int $size): void
    {
        // At the end of a pipe or a network stream, a read could block.
        $mayRead = !$stream instanceof IterableStream
            && ($stream->isSeekable() || $stream->getMetadata('seekable') === true)
            && !$stream->eof()
            && $stream->getSize() === $size;
        if ($mayRead && $stream->read(1) !== '') {
            self::throwUnlessGrown($stream, $size);
        }
    }

    /** @throws \LengthException unless the stream is a file that has grown since its size was read */
    public static function throwUnlessGrown(StreamInterface $stream, int $size): void
    {
        if ($stream->getMetadata('stream_type') === 'STDIO' && self::hasGrown($stream, $size)) {
            return;
        }

        throw new \LengthException(
            "The body is longer than {$size} bytes, the size that its stream reports. If the stream has a filter, pass"
                . ' its bytes to Response::stream() instead',
        );
    }

    /**
     * Measures the open file, because its path may lead to another file now. Filters do not change its end. Guzzle's
     * NoSeekStream hides the end, so the file at the path is measured. LimitStream may hide the start too.
     */
    private static function hasGrown(StreamInterface $stream, int $size): bool
    {
        try {
            $stream->seek(0, \SEEK_END);

            return $stream->tell() > $size;
        } catch (\RuntimeException) { // also for some filters since PHP 8.5
            $path = $stream->getMetadata('uri');
            clearstatcache();

            return !$stream->isSeekable() && \is_string($path) && is_file($path) && filesize($path) > $size;
        }
    }
}

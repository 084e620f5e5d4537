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
     * @throws \LengthException see {@see refuse()}
     */
    public static function check(StreamInterface $stream, int $size): void
    {
        // If the size is not the stream's own, a read could block.
        $mayRead = !$stream instanceof IterableStream && !$stream->eof() && $stream->getSize() === $size;
        if ($mayRead && $stream->read(1) !== '') {
            self::refuse($stream, $size);
        }
    }

    /** @throws \LengthException unless the stream is a file that has grown since its size was read */
    public static function refuse(StreamInterface $stream, int $size): void
    {
        $path = $stream->getMetadata('uri');
        if (\is_string($path)) {
            clearstatcache(true, $path);
            if (is_file($path) && filesize($path) > $size) {
                return;
            }
        }

        throw new \LengthException(
            "The body is longer than {$size} bytes, the size that its stream reports. If the stream has a filter, pass"
                . ' its bytes to Response::stream() instead',
        );
    }
}

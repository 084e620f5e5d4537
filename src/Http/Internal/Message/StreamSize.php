<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Message;

use Psr\Http\Message\StreamInterface;

/** Checks the sizes that streams report. For a file with a stream filter, PHP reports the unfiltered size. */
final class StreamSize
{
    /** Returns a stream's size in bytes; null if the size is unknown or uncertain. Returns a size of 0 unchecked. */
    public static function of(StreamInterface $stream): ?int
    {
        $size = $stream->getSize();

        return $size === 0 || $size > 0 && self::isCertain((array) $stream->getMetadata()) ? $size : null;
    }

    /**
     * Returns whether fstat() reports the right size of a resource. PHP can't list the filters of a resource. So while
     * any stream of the process has a filter, the result is false for all files. Filters of php://temp are ignored,
     * because PSR-7 libraries store strings there. Without a certain size, these strings would be sent in chunks.
     *
     * @param array<array-key, mixed> $metadata from stream_get_meta_data(); empty if there is no resource
     */
    public static function isCertain(array $metadata): bool
    {
        return !self::isOfFilterUri($metadata) && match ($metadata['stream_type'] ?? '') {
            'user-space' => false,
            'STDIO' => !self::hasFilters(),
            default => true,
        };
    }

    /** @param array<array-key, mixed> $metadata as for {@see isCertain()} */
    public static function isOfFilterUri(array $metadata): bool
    {
        $uri = $metadata['uri'] ?? '';

        return \is_string($uri) && str_starts_with($uri, 'php://filter');
    }

    /** Returns whether a stream may have a filter. PHP can't reset some filters, so a second read may fail. */
    public static function mayHaveFilters(StreamInterface $stream): bool
    {
        $metadata = (array) $stream->getMetadata();

        return self::isOfFilterUri($metadata) || self::hasFilters() && !self::isCertain($metadata);
    }

    public static function hasFilters(): bool
    {
        return get_resources('stream filter') !== [];
    }

    /** Returns the bytes that follow the position of a stream of $size bytes; null if it has no position. */
    public static function left(StreamInterface $stream, int $size): ?int
    {
        try {
            return max(0, $size - $stream->tell());
        } catch (\RuntimeException) {
            return null;
        }
    }

    /** Returns whether bytes of a stream were read; false if it has no position. */
    public static function hasMoved(StreamInterface $stream): bool
    {
        return self::left($stream, 1) === 0;
    }

    /** @throws \LengthException when bytes follow the $size bytes that were read, unless the file has grown */
    public static function ensureAtEnd(StreamInterface $stream, int $size): void
    {
        // Only streams that can seek are read, because a read could block at the end of a pipe or a network stream.
        $mayRead = !$stream instanceof IterableStream
            && ($stream->isSeekable() || $stream->getMetadata('seekable') === true)
            && !$stream->eof()
            && $stream->getSize() === $size;
        if ($mayRead && $stream->read(1) !== '') {
            self::throwUnlessGrown($stream, $size);
        }
    }

    /** @throws \LengthException unless the stream is a file that has grown; then its first $size bytes are sent */
    public static function throwUnlessGrown(StreamInterface $stream, int $size): void
    {
        if (!self::hasGrown($stream, $size)) {
            throw new \LengthException(
                "The body is longer than {$size} bytes, the size that its stream reports. Pass its bytes to"
                    . ' Response::stream() instead',
            );
        }
    }

    /**
     * Returns whether the stream is a file that is longer than $size. Seeks in the open file, because its path may lead
     * to another file now. Filters do not change the end of the file. Guzzle's NoSeekStream can't seek, so the size of
     * the file at its path decides. Guzzle's LimitStream can seek, but not to the end. For a LimitStream, the result is
     * false, because a LimitStream may also skip the start of its file.
     */
    public static function hasGrown(StreamInterface $stream, int $size): bool
    {
        if ($stream->getMetadata('stream_type') !== 'STDIO') {
            return false;
        }
        try {
            $stream->seek(0, \SEEK_END);

            return $stream->tell() > $size;
        } catch (\RuntimeException) { // since PHP 8.5, also thrown for some filters
            $path = $stream->getMetadata('uri');
            clearstatcache();

            return !$stream->isSeekable() && \is_string($path) && is_file($path) && filesize($path) > $size;
        }
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Message;

use Psr\Http\Message\StreamInterface;
use Spindle\Http\Internal\Answer\EventStream;

/** Ensures that two messages do not each send a part of a body that can be read only once. */
final class SingleReader
{
    /** @var \WeakMap<StreamInterface, true>|null */
    private static ?\WeakMap $claims = null;

    /** Returns whether several messages can read a stream at the same time. Each of them seeks before it reads. */
    public static function allowsSeveral(StreamInterface $stream): bool
    {
        return $stream->isSeekable() && !StreamSize::mayHaveFilters($stream);
    }

    /** Claims a stream, so that only the caller reads and closes it. Returns false while an earlier claim lasts. */
    public static function claim(StreamInterface $stream): bool
    {
        $claims = self::$claims ??= new \WeakMap();
        $isFree = !isset($claims[$stream]);
        $claims[$stream] = true;

        return $isFree;
    }

    public static function isClaimed(StreamInterface $stream): bool
    {
        return isset(self::$claims[$stream]);
    }

    /** Releases the claim, unless the stream is an object of Spindle that was read, and can't be read again. */
    public static function release(StreamInterface $stream, bool $wasRead = true): void
    {
        if (!$wasRead || !$stream instanceof IterableStream && !$stream instanceof EventStream) {
            unset(self::$claims[$stream]);
        }
    }

    public static function refusal(): \LogicException
    {
        return new \LogicException(
            'Another response sends this body. It can be read only once, or may have a filter. Create a new body',
        );
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Internal;

/** Thrown when bytes from a pipe are not a frame, for example because another program has written to the pipe. */
final class MalformedFrameException extends \UnexpectedValueException
{
    /** Creates the exception for the bytes at `$at`. "It" in the message is the process at the other end. */
    public static function at(string $bytes, int $at): self
    {
        return new self(
            'it wrote bytes that are not a frame: '
                . json_encode(substr($bytes, $at, 200), \JSON_INVALID_UTF8_SUBSTITUTE),
        );
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Remote;

use Spindle\SpindleException;

/** What a task has returned or yielded has more bytes than its agent passes on. The task has run; its result is not cut but gone. */
final class ResultTooLargeException extends \RuntimeException implements SpindleException
{
    public static function of(string $id, int $size, int $limit): self
    {
        return new self("The result of the job {$id} has {$size} bytes, and its agent passes on {$limit} at most: have the task put it where it is needed, and return its name");
    }

    /** @internal */
    public static function again(string $message): self
    {
        return new self($message);
    }
}

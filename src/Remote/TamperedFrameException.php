<?php

declare(strict_types=1);

namespace Spindle\Remote;

use Spindle\SpindleException;

/** Thrown when a frame in the engine was not signed with a known key. Nothing of it was used. */
final class TamperedFrameException extends \RuntimeException implements SpindleException
{
    public static function of(string $id, string $why): self
    {
        return new self("The frame of the job {$id} is refused: {$why}");
    }

    /** @internal */
    public static function never(string $queue, self $last): self
    {
        return new self(
            "This agent was given jobs of the queue {$queue} again and again and could verify none, so it gave them back and stops. Give it the key that signs them, by SPINDLE_KEY_FILE, and the version of Spindle that submits them. The last refusal: {$last->getMessage()}",
            0,
            $last,
        );
    }

    /** @internal */
    public static function again(string $message): self
    {
        return new self($message);
    }
}

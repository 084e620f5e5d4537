<?php

declare(strict_types=1);

namespace Spindle\Remote;

use Spindle\Remote\Internal\FrameKind;
use Spindle\SpindleException;

/** A frame (a signed job, outcome, item or report) has no valid signature or can't be read. The frame was not used. */
final class InvalidSignatureException extends \RuntimeException implements SpindleException
{
    /** @internal */
    public static function of(string $id, string $why, FrameKind $kind = FrameKind::Job): self
    {
        return new self("The {$kind->prefix()}job " . Job::givenId($id) . " was refused: {$why}");
    }

    /** @internal */
    public static function noJobVerified(string $queue, self $last): self
    {
        return new self(
            "The agent could verify none of the jobs that it claimed from the queue {$queue}. "
                . 'It has given them back and stops. '
                . 'Add the key that signs the jobs to the file that SPINDLE_KEY_FILE names, '
                . 'and run the same version of Spindle as the process that submits the jobs. '
                . "The last failure: {$last->getMessage()}",
            0,
            $last,
        );
    }

    /** @internal */
    public static function withMessage(string $message): self
    {
        return new self($message);
    }
}

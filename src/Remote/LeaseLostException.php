<?php

declare(strict_types=1);

namespace Spindle\Remote;

use Spindle\SpindleException;

/** Thrown when an agent's lease has ended, and other agents may claim its jobs. */
final class LeaseLostException extends \RuntimeException implements SpindleException
{
    public static function of(string $owner): self
    {
        return new self(
            "The lease of {$owner} has ended: it was cut off from the broker, or was stopped, for longer than that",
        );
    }
}

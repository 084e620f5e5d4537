<?php

declare(strict_types=1);

namespace Spindle\Remote;

use Spindle\SpindleException;

/** The lease of an agent (its time-limited right to its claimed jobs) has ended. Other agents can claim the jobs. */
final class LeaseLostException extends \RuntimeException implements SpindleException
{
    public static function of(string $owner): self
    {
        return new self(
            "The lease of the agent {$owner} has ended: for too long, the agent did not reach the engine, or its "
                . 'process was suspended. Its jobs run again on other agents, unless the engine has lost its data.',
        );
    }
}

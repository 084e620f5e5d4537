<?php

declare(strict_types=1);

namespace Spindle\Remote;

use Spindle\SpindleException;

/** An agent can't run, because it was closed or killed. */
final class AgentClosedException extends \RuntimeException implements SpindleException
{
    private function __construct(string $message)
    {
        parent::__construct($message);
    }

    /** @internal */
    public static function of(string $queue): self
    {
        return new self("The agent of the queue {$queue} is closed and can not run again. Create another Agent");
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Command\Internal\Launcher;

/** A command that could not be started; never leaves the launcher but as a frame. */
final class StartFailure extends \Exception
{
    /** @param int $exitCode what a shell would report: 127 for a missing program, 126 for any other reason */
    public function __construct(public readonly int $exitCode, string $reason)
    {
        parent::__construct($reason);
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher\Process;

/** A command that could not be started; never leaves the launcher but as a frame. */
final class StartFailure extends \Exception
{
    /**
     * @param int $exitCode what a shell would report: 127 for a missing program, 126 for any other reason
     * @param int $why      0, or Protocol's EXHAUSTED
     */
    public function __construct(public readonly int $exitCode, string $reason, public readonly int $why = 0)
    {
        parent::__construct($reason);
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher\Process;

/** A command that could not be started. It leaves the launcher as a frame only. */
final class StartFailure extends \Exception
{
    /**
     * @param int $exitCode exit code that a shell would report: 127 for a missing program, 126 for any other reason
     * @param int $why      0, or EXHAUSTED of LauncherProtocol
     */
    public function __construct(public readonly int $exitCode, string $reason, public readonly int $why = 0)
    {
        parent::__construct($reason);
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher\Process;

use Spindle\Internal\Launcher\LauncherProtocol;

/** Thrown when a job can't be started. The launcher catches this exception, and sends NOT_STARTED to the pool. */
final class StartFailure extends \Exception
{
    /**
     * @param int $exitCode exit code that a shell would report: 127 for a missing program, 126 for any other reason
     * @param int $why      EXHAUSTED of LauncherProtocol if no descriptor or process is available; otherwise 0
     */
    public function __construct(public readonly int $exitCode, string $reason, public readonly int $why = 0)
    {
        parent::__construct($reason);
    }

    public static function exhausted(): self
    {
        return new self(
            126,
            'No more descriptors or processes are allowed (see ulimit -n, ulimit -u, the pids cgroup)',
            LauncherProtocol::EXHAUSTED,
        );
    }
}

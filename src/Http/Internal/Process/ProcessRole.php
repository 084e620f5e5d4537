<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

use Spindle\Http\HttpServer;

/** The task of one process of the supervisor. */
final readonly class ProcessRole
{
    /**
     * @param string                               $name            of the process in logs: "worker 1"
     * @param array<string, resource>              $sockets         to serve, by address
     * @param \Closure(SupervisorLink): HttpServer $createServer    called in the process
     * @param bool                                 $runsApplication whether reloads and queries include the process;
     *     a process for which this is false ends after the others
     * @param string|null                          $memoryLimit     PHP's memory_limit; null to keep it
     */
    public function __construct(
        public string $name,
        public array $sockets,
        public \Closure $createServer,
        public bool $runsApplication = true,
        public ?string $memoryLimit = null,
    ) {}
}

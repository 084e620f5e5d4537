<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

use Spindle\Http\HttpServer;

final readonly class ProcessRole
{
    /**
     * @param string                     $name    of the process in logs: "worker 1"
     * @param array<string, resource>    $sockets to serve, by address
     * @param \Closure(SupervisorLink): HttpServer $server  creates the server; called in the process
     * @param bool                       $runsApplication whether reloads and queries include the process. Other
     *     processes start before the application and end after it
     * @param string|null                $memoryLimit     PHP's memory_limit of the process; null to keep it
     */
    public function __construct(
        public string $name,
        public array $sockets,
        public \Closure $server,
        public bool $runsApplication = true,
        public ?string $memoryLimit = null,
    ) {}
}

<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

use Spindle\Http\HttpServer;

/** What a process is there for. */
final readonly class Duty
{
    /**
     * @param string                     $name    as logs call the process: "worker 1"
     * @param array<string, resource>    $sockets that it serves, by address
     * @param \Closure(Link): HttpServer $server  makes what serves them; called in the process
     * @param bool                       $runsApplication whether new code concerns it, and surveys do. What does not is there before and after those that do
     * @param string|null                $memoryLimit     for PHP's memory_limit of the process; null to leave it as it is
     */
    public function __construct(
        public string $name,
        public array $sockets,
        public \Closure $server,
        public bool $runsApplication = true,
        public ?string $memoryLimit = null,
    ) {}
}

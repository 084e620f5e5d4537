<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

use Spindle\Http\Admin;
use Spindle\Http\AppException;
use Spindle\Http\HttpServer;
use Spindle\Http\Internal\Server\Listeners;

/** The role of one process that the supervisor forks: its sockets, server and settings. */
final readonly class ProcessRole
{
    /**
     * @param string                  $name            name of the process in logs, such as "worker 1"
     * @param array<string, resource> $sockets         listening sockets that the process serves, by address
     * @param bool $runsApplication true for a worker process, which takes part in reloads and queries; false for the
     *     process of the admin address, which ends after the worker processes
     * @param string|null             $memoryLimit     PHP's memory_limit; null to keep PHP's setting
     * @param bool                    $tracesBlocks    whether the process reports what blocks its event loop
     */
    public function __construct(
        public string $name,
        public array $sockets,
        private ServerFactory $servers,
        public bool $runsApplication = true,
        public ?string $memoryLimit = null,
        public bool $tracesBlocks = false,
    ) {}

    /**
     * Creates the server. Called in the forked process.
     *
     * @throws AppException
     */
    public function createServer(SupervisorLink $link): HttpServer
    {
        return $this->runsApplication
            ? $this->servers->application($this->sockets, $link)
            : $this->servers->admin($this->sockets, Admin::from(new ProcessServers($link)));
    }

    /** Updates the certificate in the process of the admin address, after a reload has replaced all other processes. */
    public function followReload(): void
    {
        $this->servers->updateAdmin($this->sockets);
    }

    public function closeSockets(): void
    {
        Listeners::close($this->sockets);
    }
}

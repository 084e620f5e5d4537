<?php

declare(strict_types=1);

namespace Spindle\Tests\Http;

use PHPUnit\Framework\Attributes\After;
use Spindle\Http\HttpServerOptions;

/** Runs servers in separate processes, and ends them with the test. */
trait StartsServers
{
    /** @var list<ServerProcess> */
    private array $processes = [];

    #[After(5)]
    protected function endServerProcesses(): void
    {
        foreach ($this->processes as $process) {
            $process->kill();
        }
        $this->processes = [];
    }

    /**
     * @param string       $limits shell commands to run first in the process
     * @param list<string> $php    options for PHP
     */
    private function startServer(
        HttpServerOptions $options = new HttpServerOptions(),
        string $limits = ':',
        array $php = [],
    ): ServerProcess {
        return $this->processes[] = ServerProcess::start(Routes::class . '::handle', $options, $limits, $php);
    }
}

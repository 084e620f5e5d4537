<?php

declare(strict_types=1);

namespace Spindle\Tests\Remote;

use PHPUnit\Framework\Attributes\After;
use Spindle\Tests\Host;
use Symfony\Component\Process\Process;

use function Amp\delay;

/** Agents in processes of their own, which have ended when the test has. */
trait RunsAgents
{
    use UsesRedis;

    /** @var list<Process> */
    private array $agents = [];

    /** @param float ...$options of {@see AgentProgram::run()} */
    protected function agent(string $queue, int $workers = 2, float ...$options): Process
    {
        return $this->agentAt(Redis::shared()->address(), $queue, $workers, ...$options);
    }

    protected function agentAt(string $address, string $queue, int $workers = 2, float ...$options): Process
    {
        return $this->agents[] = Host::start(AgentProgram::class . '::run', [$address, $queue, $workers, ...array_values($options)]);
    }

    /**
     * @param list<string>                $within a program, with arguments, that starts the rest of its command line
     * @param array<string, string|false> $environment
     */
    protected function agentWithin(array $within, array $environment, string $address, string $queue, int $workers = 2, float ...$options): Process
    {
        return $this->agents[] = Host::start(AgentProgram::class . '::run', [$address, $queue, $workers, ...array_values($options)], $within, $environment);
    }

    /** Returns when it has finished what it runs. */
    protected function stop(Process $agent): void
    {
        $agent->signal(\SIGTERM);
        while ($agent->isRunning()) {
            delay(0.01);
        }
    }

    #[After(-1)]
    protected function stopAgents(): void
    {
        $agents = $this->agents;
        $this->agents = [];
        foreach ($agents as $agent) {
            if ($agent->isRunning()) {
                $agent->signal(\SIGTERM);
            }
        }
        foreach ($agents as $agent) {
            while ($agent->isRunning()) {
                delay(0.01); // what was asked of the engine is answered meanwhile
            }
        }
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Tests\Remote;

use PHPUnit\Framework\Attributes\After;
use Spindle\Tests\Eventually;
use Spindle\Tests\Host;
use Symfony\Component\Process\Process;

/** Agents in separate processes, which end with the test. */
trait RunsAgents
{
    use UsesRedis;

    /** Seconds that an agent may take to finish its jobs and to exit. */
    private const ENDS_WITHIN = 20.0;

    /** @var list<Process> */
    private array $agents = [];

    /** @param float ...$options of {@see AgentProgram::run()} */
    protected function agent(string $queue, int $workers = 2, float ...$options): Process
    {
        return $this->agentAt(Redis::shared()->url(), $queue, $workers, ...$options);
    }

    protected function agentAt(string $address, string $queue, int $workers = 2, float ...$options): Process
    {
        return $this->agents[] = Host::start(
            AgentProgram::class . '::run',
            [$address, $queue, $workers, ...array_values($options)],
        );
    }

    /**
     * @param list<string>                $within a program, with arguments, that starts the rest of its command line
     * @param array<string, string|false> $environment
     */
    protected function agentWithin(
        array $within,
        array $environment,
        string $address,
        string $queue,
        int $workers = 2,
        float ...$options,
    ): Process {
        return $this->agents[] = Host::start(
            AgentProgram::class . '::run',
            [$address, $queue, $workers, ...array_values($options)],
            $within,
            $environment,
        );
    }

    /** Stops an agent, and returns when it has finished its jobs. */
    protected function stop(Process $agent): void
    {
        $agent->signal(\SIGTERM);
        Eventually::holds(static fn(): bool => !$agent->isRunning(), 'the agent has ended', self::ENDS_WITHIN);
    }

    /** Kills the agents of a test that has failed: what they run may never end. */
    #[After(-1)]
    protected function stopAgents(): void
    {
        $agents = $this->agents;
        $this->agents = [];
        $hasFailed = $this->status()->isFailure() || $this->status()->isError();
        self::signal($agents, $hasFailed ? \SIGKILL : \SIGTERM);
        try {
            // The loop runs, so that answers of the engine arrive.
            Eventually::holds(
                static fn(): bool => self::running($agents) === [],
                'all agents have ended',
                self::ENDS_WITHIN,
            );
        } finally {
            self::signal($agents, \SIGKILL);
        }
    }

    /** @param list<Process> $agents */
    private static function signal(array $agents, int $signal): void
    {
        foreach (self::running($agents) as $agent) {
            $agent->signal($signal);
        }
    }

    /**
     * @param list<Process> $agents
     *
     * @return list<Process>
     */
    private static function running(array $agents): array
    {
        return array_values(array_filter($agents, static fn(Process $agent): bool => $agent->isRunning()));
    }
}

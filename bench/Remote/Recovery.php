<?php

declare(strict_types=1);

namespace Spindle\Bench\Remote;

use Amp\CancelledException;
use Amp\Future;
use Amp\TimeoutCancellation;
use Spindle\Bench\Http\Child;
use Spindle\Bench\Http\Outcome;
use Spindle\Bench\Support\Rounds;
use Spindle\Remote\Durability;
use Spindle\Remote\RemoteExecutor;

/** Time from a SIGKILL until the task runs again. */
final readonly class Recovery
{
    /**
     * Largest time in seconds that a task has run before the kill. With an agent, the kill falls anywhere between two
     * renewals of its lease.
     */
    private const MAX_SECONDS_TO_WORKER_KILL = 0.1;
    private const MAX_SECONDS_TO_AGENT_KILL = 1.0;

    /** Timeout in seconds until the task runs, and until it runs again. */
    private const TIMEOUT = 50.0;

    private const POLL_INTERVAL = 0.002;

    private Rig $rig;
    private RemoteExecutor $executor;

    private function __construct()
    {
        $this->rig = Rig::start(Durability::Durable);
        $this->executor = $this->rig->executor();
    }

    public static function ofWorkers(int $kills): Outcome
    {
        return (new self())->workers($kills);
    }

    public static function ofAgents(int $kills): Outcome
    {
        return (new self())->agents($kills);
    }

    private function workers(int $kills): Outcome
    {
        $agent = $this->rig->agent();
        $this->rig->await([$agent]);
        $times = [];
        for ($i = 1; $i <= $kills; ++$i) {
            Rounds::say("worker {$i}/{$kills}");
            [$task, $pid] = $this->startTask($i);
            \Amp\delay(self::randomSeconds(self::MAX_SECONDS_TO_WORKER_KILL));
            $killed = hrtime(true);
            posix_kill($pid, \SIGKILL);
            $times[] = self::from($killed, $task);
        }
        $agent->stop();

        return self::outcome($times);
    }

    /**
     * Kills all processes of the agent that runs the task at once, as if its machine failed. Another agent is running.
     */
    private function agents(int $kills): Outcome
    {
        $agents = [$this->rig->agent(), $this->rig->agent()];
        $times = [];
        for ($i = 1; $i <= $kills; ++$i) {
            Rounds::say("agent {$i}/{$kills}");
            $this->rig->await($agents);
            [$task, $pid] = $this->startTask($i);
            $which = \in_array($pid, $agents[0]->tree->pids(), true) ? 0 : 1;
            \Amp\delay(self::randomSeconds(self::MAX_SECONDS_TO_AGENT_KILL));
            $pids = $agents[$which]->tree->pids();
            $killed = hrtime(true);
            array_map(static fn(int $pid): bool => posix_kill($pid, \SIGKILL), $pids);
            $times[] = self::from($killed, $task);
            $agents[$which]->stop();
            $agents[$which] = $this->rig->agent();
        }
        array_map(static fn(Child $agent) => $agent->stop(), $agents);

        return self::outcome($times);
    }

    /** @return array{Future<mixed>, int} a running task, and its worker's process id */
    private function startTask(int $number): array
    {
        $file = $this->rig->file("held.{$number}");
        $task = $this->executor->submit(new Held($file));
        $task->ignore();
        for ($end = hrtime(true) + self::TIMEOUT * 1e9; !is_file($file); \Amp\delay(self::POLL_INTERVAL)) {
            if (hrtime(true) > $end || $task->isComplete()) {
                throw new \RuntimeException('no worker started the task');
            }
            clearstatcache();
        }
        $pid = (int) file_get_contents($file);
        unlink($file);

        return $pid > 0 ? [$task, $pid] : throw new \RuntimeException('the task did not report its process id');
    }

    /**
     * @param Future<mixed> $task
     *
     * @return float milliseconds; infinite when the task did not run again
     */
    private static function from(int $killed, Future $task): float
    {
        try {
            $again = $task->await(new TimeoutCancellation(self::TIMEOUT));
        } catch (CancelledException) {
            return \INF;
        }

        return \is_int($again) && $again > $killed ? ($again - $killed) / 1e6 : \INF;
    }

    /** @param list<float> $all milliseconds */
    private static function outcome(array $all): Outcome
    {
        Rounds::say('');
        $times = Times::of(array_values(array_filter($all, is_finite(...))));
        $figures = $times->figures();
        $lost = \count($all) - $figures['count'];

        return new Outcome(
            $figures['p50'],
            $figures,
            $lost === 0 ? [] : ["{$lost} tasks did not run again"],
            ['histogram' => $times->histogram(), 'times' => $times->all()],
        );
    }

    private static function randomSeconds(float $seconds): float
    {
        return $seconds * random_int(0, 1000) / 1000;
    }
}

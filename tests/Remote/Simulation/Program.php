<?php

declare(strict_types=1);

namespace Spindle\Tests\Remote\Simulation;

use Amp\DeferredCancellation;
use Revolt\EventLoop;
use Spindle\Internal\Clock;
use Spindle\Remote\Agent;
use Spindle\Remote\Internal\ReconnectBackoff;
use Spindle\Remote\JobCancelledException;
use Spindle\Remote\JobRetryPolicy;
use Spindle\Remote\JobStatus;
use Spindle\Remote\RemoteExecutor;
use Spindle\Remote\SigningKeys;
use Spindle\Tests\Remote\AgentProgram;
use Spindle\Tests\Remote\MemoryEngine;
use Spindle\Tests\VirtualDriver;
use Spindle\Worker\TaskException;

use function Amp\async;
use function Amp\delay;

/** Agents, an engine and two callers in one process, whose loop has virtual time. */
final class Program
{
    private const QUEUE = 'simulated';
    private const WORKERS = 4;

    /** @var array<string, mixed> records of the simulation */
    private array $seen = [];

    private function __construct(private readonly VirtualDriver $driver, private readonly int $seed) {}

    /**
     * @return array<string, mixed> results, failures, cancelled jobs, faults, runs, seconds of virtual time, and the
     *                              figures of the queue in the end
     */
    public static function run(int $seed, int $agents, int $jobs): array
    {
        $driver = new VirtualDriver();
        EventLoop::setDriver($driver);
        Clock::replace($driver->time(...));
        mt_srand($seed);
        $program = new self($driver, $seed);
        $stop = new DeferredCancellation();
        EventLoop::queue(static function () use ($program, $agents, $jobs, $stop): void {
            try {
                $program->simulate($agents, $jobs, $stop);
            } finally {
                $stop->cancel();
            }
        });
        EventLoop::run(); // until the loop is empty

        return $program->seen;
    }

    private function simulate(int $size, int $jobs, DeferredCancellation $stop): void
    {
        $driver = $this->driver;
        $world = new World($this->seed);
        $engine = new MemoryEngine($driver->time(...));
        $keys = new SigningKeys([AgentProgram::KEY]);
        /** @var list<array{SimulatedBroker, SimulatedPool}> $agents */
        $agents = [];
        $start = static function (int $i) use (&$agents, $engine, $world, $driver, $keys, $stop): void {
            $broker = new SimulatedBroker($engine, $world, $driver->time(...));
            $pool = new SimulatedPool($world, self::WORKERS);
            $agents[$i] = [$broker, $pool];
            $createPool = static fn(): SimulatedPool => $pool;
            $agent = new Agent($broker, self::QUEUE, self::WORKERS, $keys, createPool: $createPool);
            async(static function () use ($agent, $stop): void {
                try {
                    $stop->getCancellation()->subscribe(static fn() => $agent->close());
                    $agent->run();
                } catch (KilledException) {
                    // The agent's process is gone.
                }
            })->ignore();
        };
        for ($i = 0; $i < $size; ++$i) {
            $start($i);
        }
        $clients = [
            new SimulatedBroker($engine, $world, $driver->time(...)),
            new SimulatedBroker($engine, $world, $driver->time(...)),
        ];
        $calm = new DeferredCancellation();
        $stop->getCancellation()->subscribe($calm->cancel(...));
        async(static function () use ($calm, &$agents, $clients, $world, $start): void {
            while (!$calm->isCancelled()) {
                delay(0.2 * $world->chance());
                $i = $world->random->getInt(0, \count($agents) - 1);
                self::harm($i, $agents[$i][0], $agents[$i][1], $clients[0], $world, $start);
            }
        })->ignore();
        $executor = new RemoteExecutor($clients[0], self::QUEUE, $keys, new JobRetryPolicy(maxCrashes: 20));
        $others = new RemoteExecutor($clients[1], self::QUEUE, $keys, new JobRetryPolicy(delay: 0.5));
        $dispatched = async($this->dispatch(...), $others, $world, intdiv($jobs, 100));
        $seen = 0;
        foreach ($executor->mapUnordered(self::upTo($jobs), abs(...)) as $_) {
            if (++$seen === (int) (0.8 * $jobs)) {
                $calm->cancel(); // no more crashes for the rest, but answers are lost
            }
        }
        /** @var array{int, int} $unsuccessful */
        $unsuccessful = $dispatched->await();
        foreach ($agents as [$broker]) {
            $broker->calmDown();
        }
        $statistics = $engine->queue(self::QUEUE)->statistics();
        $this->seen = [
            'results' => $seen,
            'failures' => $unsuccessful[0],
            'cancelled' => $unsuccessful[1],
            'faults' => $world->faults,
            'runs' => $world->runs,
            'seconds' => $driver->time(),
            'figures' => $statistics,
        ];
    }

    /** @param \Closure(int): void $start */
    private static function harm(
        int $i,
        SimulatedBroker $broker,
        SimulatedPool $pool,
        SimulatedBroker $client,
        World $world,
        \Closure $start,
    ): void {
        $seconds = 25 * $world->chance();
        switch ($world->random->getInt(0, 3)) {
            case 0:
                $broker->kill();
                $pool->kill();
                EventLoop::delay($seconds, static fn() => $start($i));
                break;
            case 1:
                $broker->cut();
                EventLoop::delay($seconds, $broker->restore(...));
                break;
            case 2:
                $broker->pause($seconds);
                break;
            default:
                $client->cut();
                EventLoop::delay($seconds / 3, $client->restore(...));
        }
    }

    /** @return array{int, int} numbers of failed and of cancelled jobs */
    private function dispatch(RemoteExecutor $executor, World $world, int $count): array
    {
        $futures = [];
        for ($i = 0; $i < $count; ++$i) {
            $kind = ['good', 'good', 'good', 'late', 'unwanted', 'bad', 'poison'][$world->random->getInt(0, 6)];
            $key = $world->random->getInt(0, 3) === 0 ? 'key ' . $world->random->getInt(0, 20) : '';
            $id = "{$kind}-{$i}";
            if ($key !== '') {
                $world->keyOf($id, $key);
            }
            $executor->dispatch(time(...), $id, $key, $world->random->getInt(0, 3) === 0 ? 5 * $world->chance() : 0.0);
            $futures[$id] = $executor->attach($id);
            if ($kind === 'unwanted') {
                EventLoop::delay(5 * $world->chance(), static function () use ($executor, $id): void {
                    $executor->cancel($id);
                });
            }
        }
        $failed = $cancelled = 0;
        foreach ($futures as $id => $future) {
            try {
                if ($future->await() !== $id) {
                    throw new \LogicException("{$id} has the result of another one");
                }
            } catch (TaskException) {
                ++$failed;
            } catch (JobCancelledException) {
                ++$cancelled;
                $status = ReconnectBackoff::retry(60.0, static fn(): ?JobStatus => $executor->status($id));
                if ($status !== JobStatus::Cancelled) {
                    throw new \LogicException("{$id} was cancelled, and its status is {$status?->value}");
                }
            }
        }

        return [$failed, $cancelled];
    }

    /** @return \Generator<int, int> */
    private static function upTo(int $count): \Generator
    {
        for ($i = 0; $i < $count; ++$i) {
            yield $i;
        }
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Remote;

use PHPUnit\Framework\Attributes\After;
use Random\Engine\Mt19937;
use Random\Randomizer;
use Revolt\EventLoop;
use Spindle\Remote\JobRetryPolicy;
use Spindle\Remote\RedisBroker;
use Spindle\Remote\RemoteExecutor;
use Spindle\Remote\Testing\TemporaryRedis;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Scale;
use Spindle\Tests\TidyTestCase;
use Spindle\Worker\WorkerCrashedException;
use Symfony\Component\Process\Process;

use function Amp\delay;

/** Processes die, stop or are cut off while jobs run, at times that the seed determines. */
final class ChaosTest extends TidyTestCase
{
    use OtherMachines;
    use OwnDirectory;

    /** Agents on this machine, and simulated machines with one agent each, where the network allows them. */
    private const AGENTS = 2;
    private const MACHINES = 2;
    private const WORKERS = 3;

    /**
     * Lease, heartbeat and lease margin in seconds. A restart of the engine takes less than a lease. Otherwise, its
     * agents would end their jobs.
     */
    private const SHORT = [6.0, 0.5, 1.5];
    private const LONG = [10.0, 1.0, 3.0];

    /** One in N jobs kills its worker. */
    private const CRASH = 100;

    /** Duration of a task in microseconds. With tasks of a tenth of that, a killed worker would have unsent results. */
    private const TAKES = 1000;

    /**
     * Jobs that may have finished more than once: a fraction of all in full runs, and a number per fault in short runs.
     */
    private const TWICE = 0.005;
    private const TWICE_EACH = 150;

    /** @var array<string, Process> agents that are neither stopped nor cut off, by place */
    private array $agentsAt = [];

    /** @var list<string> where they run on this machine, and the others */
    private array $places = [];

    /** @var list<string> */
    private array $others = [];

    /** @var array<string, \Closure(): void> callbacks that end a stop or a partition, by watcher */
    private array $ends = [];

    private string $queue = '';

    protected function deadline(): int
    {
        return 120 + intdiv(self::jobs(), 100);
    }

    private static function jobs(): int
    {
        return Scale::isFull() ? 100_000 : 3_000;
    }

    public function testEachJobHasOneOutcomeDespiteAllDeaths(): void
    {
        $begin = microtime(true);
        $this->queue = self::newQueue();
        $redis = TemporaryRedis::start(['appendfsync' => 'always']);
        $obstacle = $this->connectOthers($redis);
        $this->places = [
            ...array_map(static fn(int $number): string => "here {$number}", range(1, self::AGENTS)),
            ...$this->others,
        ];
        foreach ($this->places as $place) {
            $this->startAgent($place, $redis);
        }
        $broker = new RedisBroker($redis->url(), timeout: 20.0);
        $poison = new RemoteExecutor($broker, $this->queue, self::keys(), new JobRetryPolicy(delay: 0.05));
        $dead = [];
        for ($i = 0; $i < Scale::of(20); ++$i) {
            $dead[] = $poison->dispatch(static fn() => LoggedTasks::die('poison'));
        }
        $executor = new RemoteExecutor($broker, $this->queue, self::keys(), new JobRetryPolicy(maxCrashes: 100));
        $jobs = self::jobs();
        $seed = Scale::seed();
        $log = $this->path('log');
        $faults = $this->faults($jobs, $redis, new Randomizer(new Mt19937($seed)));
        [$oneIn, $takes] = [self::CRASH, self::TAKES];
        $seen = $twice = [];
        foreach ($executor->mapUnordered(
            range(1, $jobs),
            static fn(int $number): int => LoggedTasks::run($log, $number, $seed, $oneIn, $takes),
        ) as $key => $number) {
            self::assertSame($key + 1, $number);
            if (isset($seen[$key])) {
                $twice[] = $key;
            }
            $seen[$key] = true;
            if (isset($faults[\count($seen)])) {
                $faults[\count($seen)]();
            }
        }
        $crashed = 0;
        foreach ($dead as $id) {
            try {
                $poison->attach($id)->await();
            } catch (WorkerCrashedException) {
                ++$crashed;
            }
        }
        while ($this->ends !== []) {
            delay(0.01);
        }
        foreach ($this->agentsAt as $place => $agent) {
            self::assertTrue($agent->isRunning(), "{$place}: what comes back goes on");
        }
        $this->stopAgents();
        $statistics = $broker->statistics($this->queue);
        $started = LoggedTasks::started($log);
        $ended = LoggedTasks::ended($log);
        $again = array_sum($ended) - \count($ended);
        fprintf(
            \STDERR,
            '%d jobs in %.0f s, %d agents killed, the engine %d times, %d agents stopped, %s and %d workers killed: '
                . "done %d, dead %d, runs %d, cut short %d, ended twice %d (%.2f %%), settled too late %d\n",
            $jobs,
            microtime(true) - $begin,
            Scale::of(20),
            Scale::of(5),
            Scale::of(5),
            $obstacle ?? Scale::of(5) . ' cut off',
            array_sum($started) - array_sum($ended),
            $statistics['done_total'],
            $statistics['died_total'],
            array_sum($started),
            array_sum($started) - array_sum($ended),
            $again,
            100 * $again / $jobs,
            $statistics['stale_total'],
        );

        self::assertSame([], $twice, 'no result comes twice');
        self::assertCount($jobs, $seen, 'none is lost');
        self::assertCount($jobs, $ended);
        self::assertSame(\count($dead), $crashed);
        self::assertSame([$jobs, \count($dead)], [$statistics['done_total'], $statistics['died_total']]);
        self::assertSame($statistics['submitted_total'], $statistics['done_total'] + $statistics['died_total']);
        self::assertSame(
            [0, 0, 0, 0],
            [$statistics['waiting'], $statistics['running'], $statistics['delayed'], $statistics['blocked']],
        );
        self::assertLessThanOrEqual(Scale::isFull() ? self::TWICE * $jobs : self::TWICE_EACH * \count($faults), $again);
        $redis->stop();
    }

    #[After(20)]
    protected function endFaults(): void
    {
        foreach ($this->ends as $watcher => $end) {
            EventLoop::cancel($watcher);
            $end();
        }
        $this->ends = [];
    }

    /** @return string|null why there are no others */
    private function connectOthers(TemporaryRedis $redis): ?string
    {
        try {
            for ($i = 0; $i < self::MACHINES; ++$i) {
                $this->others[] = $this->connectMachine($redis);
            }
        } catch (\RuntimeException $failure) {
            $this->removeMachines();
            $this->others = [];

            return "none cut off ({$failure->getMessage()})";
        }

        return null;
    }

    /** @return array<int, \Closure(): void> faults, by the number of results after which they happen */
    private function faults(int $jobs, TemporaryRedis $redis, Randomizer $random): array
    {
        $kinds = [
            ...array_fill(0, Scale::of(20), function () use ($redis, $random): void {
                [$place, $agent] = $this->pick($random, $this->places);
                $agent->signal(\SIGKILL);
                $this->startAgent($place, $redis);
            }),
            ...array_fill(0, Scale::of(5), function () use ($redis): void {
                $redis->kill();
                $redis->restart();
                if ($this->others !== []) {
                    $this->listenToMachines($redis);
                }
            }),
            ...array_fill(0, Scale::of(5), function () use ($random): void {
                [$place, $agent] = $this->pick($random, $this->places);
                $agent->signal(\SIGSTOP);
                $this->after(self::lease()[0] + 1.0, function () use ($place, $agent): void {
                    $agent->signal(\SIGCONT);
                    $this->agentsAt[$place] = $agent;
                });
            }),
            ...array_fill(0, $this->others === [] ? 0 : Scale::of(5), function () use ($random): void {
                [$place, $agent] = $this->pick($random, $this->others);
                $this->cutOff($place);
                $this->after(self::lease()[0] + 1.0, function () use ($place, $agent): void {
                    $this->reconnect($place);
                    $this->agentsAt[$place] = $agent;
                });
            }),
        ];
        $faults = [];
        foreach ($random->shuffleArray($kinds) as $fault) {
            do {
                $moment = $random->getInt(intdiv($jobs, 20), intdiv($jobs * 7, 10));
            } while (isset($faults[$moment]));
            $faults[$moment] = $fault;
        }

        return $faults;
    }

    /**
     * Waits for one if all are stopped or cut off.
     *
     * @param list<string> $places
     *
     * @return array{string, Process}
     */
    private function pick(Randomizer $random, array $places): array
    {
        $free = fn(): array => array_intersect_key($this->agentsAt, array_flip($places));
        $agents = $free();
        while ($agents === []) {
            delay(0.01);
            $agents = $free();
        }
        $place = array_keys($agents)[$random->getInt(0, \count($agents) - 1)];
        unset($this->agentsAt[$place]);

        return [$place, $agents[$place]];
    }

    /** @param \Closure(): void $end */
    private function after(float $seconds, \Closure $end): void
    {
        $this->ends[EventLoop::delay($seconds, function (string $watcher) use ($end): void {
            unset($this->ends[$watcher]);
            $end();
        })] = $end;
    }

    private function startAgent(string $place, TemporaryRedis $redis): void
    {
        $options = [$this->queue, self::WORKERS, ...self::lease()];
        $this->agentsAt[$place] = \in_array($place, $this->others, true)
            ? $this->agentOn($place, $redis, ...$options)
            : $this->agentAt($redis->url(), ...$options);
    }

    /** @return array{float, float, float} */
    private static function lease(): array
    {
        return Scale::isFull() ? self::LONG : self::SHORT;
    }
}

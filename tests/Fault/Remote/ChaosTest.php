<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Remote;

use PHPUnit\Framework\TestCase;
use Random\Engine\Mt19937;
use Random\Randomizer;
use Revolt\EventLoop;
use Spindle\Remote\JobRetryPolicy;
use Spindle\Remote\RedisBroker;
use Spindle\Remote\RemoteExecutor;
use Spindle\Remote\Testing\TemporaryRedis;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\LeavesNothing;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Remote\RunsAgents;
use Spindle\Tests\Scale;
use Spindle\Worker\WorkerCrashedException;
use Symfony\Component\Process\Process;

/** All that can die does, at moments that come from the seed, while jobs are done. */
final class ChaosTest extends TestCase
{
    use EndsInTime;
    use LeavesNothing;
    use OwnDirectory;
    use RunsAgents;

    private const AGENTS = 3;
    private const WORKERS = 3;

    /** Seconds: lease, beat and margin. An engine that starts again does so within that, or its agents would end what they have. */
    private const SHORT = [6.0, 0.5, 1.5];
    private const LONG = [10.0, 1.0, 3.0];

    /** One in so many kills its worker. */
    private const CRASH = 100;

    /** Microseconds. Of tasks that take less than about a tenth of that, a worker that is killed has some done whose results it has not sent yet. */
    private const TAKES = 1000;

    /** Share of the jobs that may have come to their end more than once; and, of the few of a short run on a slow machine, so many for each fault. */
    private const TWICE = 0.005;
    private const TWICE_EACH = 150;

    /** @var list<Process> those that run, and are not stopped */
    private array $alive = [];

    private string $queue = '';

    protected function deadline(): int
    {
        return 60 + intdiv(Scale::of(100_000), 100);
    }

    public function testEachJobHasOneOutcomeWhateverDies(): void
    {
        $begin = microtime(true);
        $this->queue = self::newQueue();
        $redis = TemporaryRedis::start(['appendfsync' => 'always']);
        for ($i = 0; $i < self::AGENTS; ++$i) {
            $this->startOne($redis);
        }
        $broker = new RedisBroker($redis->address(), timeout: 20.0);
        $poison = new RemoteExecutor($broker, $this->queue, self::keys(), new JobRetryPolicy(delay: 0.05));
        $dead = [];
        for ($i = 0; $i < Scale::of(20); ++$i) {
            $dead[] = $poison->dispatch(static fn() => Trials::die('poison'));
        }
        $executor = new RemoteExecutor($broker, $this->queue, self::keys(), new JobRetryPolicy(crashes: 100));
        $jobs = Scale::of(100_000);
        $seed = Scale::seed();
        $log = $this->path('log');
        $faults = $this->faults($jobs, $redis, new Randomizer(new Mt19937($seed)));
        [$oneIn, $takes] = [self::CRASH, self::TAKES];
        $seen = $twice = [];
        foreach ($executor->mapUnordered(range(1, $jobs), static fn(int $number): int => Trials::run($log, $number, $seed, $oneIn, $takes)) as $key => $number) {
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
        $figures = $broker->figures($this->queue);
        $started = Trials::started($log);
        $ended = Trials::ended($log);
        $again = array_sum($ended) - \count($ended);
        fprintf(
            \STDERR,
            "%d jobs, %d faults and %d workers killed in %.0f s: done %d, dead %d, runs %d, cut short %d, ended twice %d (%.2f %%), settled too late %d\n",
            $jobs,
            \count($faults),
            array_sum($started) - array_sum($ended),
            microtime(true) - $begin,
            $figures['done_total'],
            $figures['died_total'],
            array_sum($started),
            array_sum($started) - array_sum($ended),
            $again,
            100 * $again / $jobs,
            $figures['stale_total'],
        );

        self::assertSame([], $twice, 'no result comes twice');
        self::assertCount($jobs, $seen, 'none is lost');
        self::assertCount($jobs, $ended);
        self::assertSame(\count($dead), $crashed);
        self::assertSame([$jobs, \count($dead)], [$figures['done_total'], $figures['died_total']]);
        self::assertSame($figures['submitted_total'], $figures['done_total'] + $figures['died_total']);
        self::assertSame([0, 0, 0, 0], [$figures['waiting'], $figures['running'], $figures['delayed'], $figures['blocked']]);
        self::assertLessThanOrEqual(Scale::isFull() ? self::TWICE * $jobs : self::TWICE_EACH * \count($faults), $again);
        $this->stopAgents();
        $redis->stop();
    }

    /** @return array<int, \Closure(): void> by how many results have come */
    private function faults(int $jobs, TemporaryRedis $redis, Randomizer $random): array
    {
        $kinds = [
            ...array_fill(0, Scale::of(20), function () use ($redis, $random): void {
                $this->pick($random)->signal(\SIGKILL);
                $this->startOne($redis);
            }),
            ...array_fill(0, Scale::of(5), static function () use ($redis): void {
                $redis->kill();
                $redis->restart();
            }),
            ...array_fill(0, Scale::of(5), function () use ($random): void {
                $agent = $this->pick($random);
                $agent->signal(\SIGSTOP);
                EventLoop::delay(self::lease()[0] + 1.0, function () use ($agent): void {
                    $agent->signal(\SIGCONT);
                    $this->alive[] = $agent;
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

    private function pick(Randomizer $random): Process
    {
        return array_splice($this->alive, $random->getInt(0, \count($this->alive) - 1), 1)[0];
    }

    private function startOne(TemporaryRedis $redis): void
    {
        $this->alive[] = $this->agentAt($redis->address(), $this->queue, self::WORKERS, ...self::lease());
    }

    /** @return array{float, float, float} */
    private static function lease(): array
    {
        return Scale::isFull() ? self::LONG : self::SHORT;
    }
}

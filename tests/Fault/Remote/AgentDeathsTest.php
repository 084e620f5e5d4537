<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Remote;

use Amp\Future;
use Amp\TimeoutCancellation;
use PHPUnit\Framework\Attributes\RequiresOperatingSystemFamily;
use PHPUnit\Framework\Attributes\TestWith;
use Random\Engine\Mt19937;
use Random\Randomizer;
use Revolt\EventLoop;
use Spindle\Remote\Job;
use Spindle\Remote\JobCancelledException;
use Spindle\Remote\JobRetryPolicy;
use Spindle\Remote\JobStatus;
use Spindle\Remote\RedisBroker;
use Spindle\Remote\RemoteExecutor;
use Spindle\Remote\Settlement;
use Spindle\Remote\SettlementKind;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\Eventually;
use Spindle\Tests\Host;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Postgres\Direction;
use Spindle\Tests\Postgres\FaultyProxy;
use Spindle\Tests\Remote\AgentProgram;
use Spindle\Tests\Remote\Redis;
use Spindle\Tests\Remote\RunsAgents;
use Spindle\Tests\Scale;
use Spindle\Tests\TidyTestCase;
use Spindle\Worker\TaskContext;
use Spindle\Worker\WorkerCrashedException;
use Symfony\Component\Process\Process;

use function Amp\async;
use function Amp\delay;
use function Amp\Future\await;

/** Agents that are stopped, killed or cut off at a certain moment. */
final class AgentDeathsTest extends TidyTestCase
{
    use CatchesThrown;
    use OwnDirectory;
    use RunsAgents;

    /** Seconds: lease, heartbeat and lease margin. */
    private const SHORT = [2.0, 0.2, 0.8];
    private const LONG = [10.0, 1.0, 3.0];

    /** Time without bytes after which an agent with a rare heartbeat waits for no answer. */
    private const QUIET_NANOSECONDS = 100_000_000;

    /** A heartbeat that is rare enough for {@see mute()}, and a lease that ends soon. */
    private const RARE = [4.0, 1.0, 1.5];

    private string $queue = '';

    protected function deadline(): int
    {
        return 120 + Scale::of(120);
    }

    public function testAnAgentThatWasStoppedForLongerThanItsLeaseCannotSettleItsJobs(): void
    {
        $isFull = Scale::isFull();
        $options = $isFull ? self::LONG : self::SHORT;
        $log = $this->path('log');
        $file = $this->path('open');
        $late = $this->path('late');
        $executor = $this->executor();
        $stopped = $this->agent($this->queue(), 4, ...$options);
        $items = $executor->dispatch(static fn(): \Generator => LoggedTasks::count($log, 1));
        $taken = $executor->attach($items)->await();
        self::assertInstanceOf(\Generator::class, $taken);
        self::assertSame(0, $taken->current());
        $ended = $executor->submit(static fn(): int => LoggedTasks::runUntil($log, 2, $file));
        $running = $executor->submit(static fn(): int => LoggedTasks::runUntil($log, 3, $late));
        Eventually::holds(static fn(): bool => \count(LoggedTasks::started($log)) === 3, 'they run');
        $stopped->signal(\SIGSTOP);
        $since = microtime(true);
        touch($file); // the worker may finish this task, but its result is lost
        $others = self::submitMany($executor, $log, Scale::of(200));
        $other = $this->agent($this->queue(), 4, ...$options);

        self::assertSame(2, $ended->await());
        await($others);
        Eventually::holds(static fn(): bool => (LoggedTasks::started($log)[3] ?? 0) === 2, 'another runs what it runs');
        try {
            foreach ($taken as $item) {
                self::assertIsInt($item);
            }
            self::fail('Nobody knows how it goes on');
        } catch (WorkerCrashedException $lost) {
            self::assertStringContainsString('lost', $lost->getMessage());
        }
        if ($isFull) {
            // The test asserts that an agent may be stopped for a minute.
            delay(max(0.0, 60 - (microtime(true) - $since)));
        }
        $before = $this->itemsOf($items);
        $stopped->signal(\SIGCONT);
        Eventually::holds(fn(): bool => $this->statistics()['agents'] === 2, 'it has a new lease', 10.0);
        touch($late);
        self::assertSame(3, $running->await());
        $this->stop($other);
        self::assertSame(100, $executor->submit(static fn(): int => 100)->await(), 'it goes on');

        $statistics = $this->statistics();
        self::assertSame([2 + \count($others) + 1, 1], [$statistics['done_total'], $statistics['died_total']]);
        self::assertSame($statistics['submitted_total'], $statistics['done_total'] + $statistics['died_total']);
        self::assertSame($before, $this->itemsOf($items), 'it stores nothing');
        self::assertSame(1, LoggedTasks::ended($log)[3] ?? 0, 'what it ran has been ended');
    }

    #[TestWith([false])]
    #[TestWith([true])]
    public function testACancelledJobOfAStoppedAgentNeverRunsAgain(bool $hasOtherAgent): void
    {
        $executor = $this->executor();
        $log = $this->path('log');
        $file = $this->path('open');
        $stopped = $this->agent($this->queue(), 1, ...self::SHORT);
        $id = $executor->dispatch(static fn(): int => LoggedTasks::runUntil($log, 1, $file), 'job', 'key');
        Eventually::holds(static fn(): bool => \count(LoggedTasks::started($log)) === 1, 'it runs');
        $stopped->signal(\SIGSTOP);
        $wait = $executor->attach($id);
        self::assertTrue($executor->cancel($id));
        self::assertSame(JobStatus::Running, $executor->status($id));
        if ($hasOtherAgent) {
            $this->agent($this->queue(), 1, ...self::SHORT);
        } else {
            Eventually::holds(fn(): bool => $this->statistics()['agents'] === 0, 'its lease has ended', 10.0);
            self::assertTrue($executor->cancel($id)); // no agent can settle the job any more, so it is removed
            self::assertSame(JobStatus::Cancelled, $executor->status($id));
        }
        self::thrown(JobCancelledException::class, static fn() => $wait->await(new TimeoutCancellation(15.0)));
        self::assertSame(JobStatus::Cancelled, $executor->status($id));
        touch($file);
        $stopped->signal(\SIGCONT);
        $next = $executor->dispatch(static fn(): int => 7, exclusiveKey: 'key');
        self::assertSame(7, $executor->attach($next)->await());
        Eventually::holds(fn(): bool => $this->statistics()['agents'] === ($hasOtherAgent ? 2 : 1), 'it goes on', 10.0);

        self::assertSame(JobStatus::Cancelled, $executor->status($id));
        self::assertSame([1 => 1], LoggedTasks::started($log));
        self::assertSame([1, 1], [$this->statistics()['cancelled_total'], $this->statistics()['done_total']]);
    }

    public function testAJobOfAStoppedAgentEndsBeforeAnotherAgentRunsIt(): void
    {
        $executor = $this->executor();
        $directories = $ids = [];
        $stopped = $this->agent($this->queue(), 2, ...self::SHORT);
        foreach (['one', 'two'] as $name) {
            $directories[$name] = $directory = $this->path($name);
            mkdir($directory);
            $task = static fn(): int => CountedTasks::tick($directory, 1, 60.0);
            $ids[] = $executor->dispatch($task, exclusiveKey: "key of {$name}");
        }
        foreach ($directories as $directory) {
            Eventually::holds(static fn(): bool => is_file("{$directory}/1.ran"), 'it runs', 10.0);
        }
        $stopped->signal(\SIGSTOP);
        $this->agent($this->queue(), 2, ...self::SHORT);

        self::assertSame([2, 2], array_map(static fn(string $id): mixed => $executor->attach($id)->await(), $ids));
        foreach ($directories as $directory) {
            self::assertLessThan(
                (int) file_get_contents("{$directory}/2.began"),
                (int) file_get_contents("{$directory}/1.ran"),
                'it never runs twice at once',
            );
        }
        $stopped->signal(\SIGCONT);
        Eventually::holds(fn(): bool => $this->statistics()['agents'] === 2, 'it has a new lease', 10.0);
        self::assertSame(7, $executor->submit(static fn(): int => 7)->await());
    }

    public function testATaskWhoseAgentIsKilledBeforeItIsAcknowledgedRunsAgainAndHasOneOutcome(): void
    {
        [$proxy, $agent, $future, $log] = $this->heldUp();
        $proxy->swallow();
        touch($this->path('open'));
        Eventually::holds(static fn(): bool => LoggedTasks::ended($log) !== [], 'it has ended');
        $this->kill($agent);
        $this->agent($this->queue(), 2, ...self::SHORT);

        self::assertSame(7, $future->await());
        self::assertSame([7 => 2], LoggedTasks::ended($log));
        self::assertSame(
            [1, 1, 1],
            [
                $this->statistics()['submitted_total'],
                $this->statistics()['done_total'],
                $this->statistics()['lost_total'],
            ],
        );
        $proxy->stop();
    }

    public function testATaskWhoseAgentIsKilledOnceItIsAcknowledgedDoesNotRunAgain(): void
    {
        [$proxy, $agent, $future, $log] = $this->heldUp(self::RARE);
        self::mute($proxy);
        touch($this->path('open'));
        Eventually::holds(fn(): bool => $this->statistics()['done_total'] === 1, 'the engine knows');
        $this->kill($agent);
        $this->agent($this->queue(), 2, ...self::SHORT);
        $next = $this->executor()->submit(static fn(): int => 8);

        self::assertSame([7, 8], [$future->await(), $next->await()]);
        Eventually::holds(
            fn(): bool => Redis::shared()->command('ZCARD', "spindle:{{$this->queue()}}:agents") === 1,
            'what it had is given to others',
        );
        self::assertSame(9, $this->executor()->submit(static fn(): int => 9)->await());
        self::assertSame([7 => 1], LoggedTasks::ended($log));
        self::assertSame([3, 0], [$this->statistics()['done_total'], $this->statistics()['lost_total']]);
        $proxy->stop();
    }

    /** The lost answer confirms the settlement of the first run, and gives the second one. */
    public function testATaskThatIsGivenAgainByAnAnswerThatIsLostRunsAgain(): void
    {
        $log = $this->path('log');
        $open = $this->path('open');
        $proxy = $this->proxy();
        $this->agentAt($this->addressAt($proxy), $this->queue(), 1);
        $future = $this->executor()->submit(static function () use ($log, $open): int {
            LoggedTasks::runUntil($log, 1, $open);
            $attempt = TaskContext::current()->attempt;

            return $attempt > 1 ? $attempt : LoggedTasks::die('once');
        });
        Eventually::holds(static fn(): bool => LoggedTasks::started($log) === [1 => 1], 'it runs');
        self::mute($proxy);
        touch($open);
        Eventually::holds(fn(): bool => $this->statistics()['retried_total'] === 1, 'the engine knows');
        $proxy->close();
        $proxy->resume();

        self::assertSame(2, $future->await());
        self::assertSame(
            [1, 0, 0],
            [$this->statistics()['done_total'], $this->statistics()['lost_total'], $this->statistics()['running']],
        );
        $this->stopAgents();
        $proxy->stop();
    }

    /** A request or an answer is lost, in part or as a whole. The agent keeps its lease. */
    public function testAnAgentWhoseConnectionIsCutAtAnyByteRunsEachTaskOnce(): void
    {
        $random = new Randomizer(new Mt19937(Scale::seed()));
        $log = $this->path('log');
        $proxy = $this->proxy();
        $this->agentAt($this->addressAt($proxy), $this->queue(), 2);
        $executor = $this->executor();
        $tasks = Scale::of(2_000);
        $info = Redis::shared()->command('INFO');
        $least = 2000 + \strlen(\is_string($info) ? $info : ''); // otherwise the agent could never check the engine
        $cutting = EventLoop::repeat(
            0.02,
            static fn() => $proxy->closeAfter($random->getInt($least, $least + 15_000), Direction::ToClient),
        );
        $results = iterator_to_array($executor->mapUnordered(range(1, $tasks), LoggedTasks::writer($log)));
        EventLoop::cancel($cutting);
        fprintf(\STDERR, "%d connections for %d tasks\n", $proxy->connections, $tasks);

        self::assertCount($tasks, $results);
        self::assertCount($tasks, LoggedTasks::started($log));
        self::assertSame($tasks, array_sum(LoggedTasks::started($log)));
        self::assertSame(0, $this->statistics()['lost_total']);
        $proxy->cutNone();
        $this->stopAgents();
        $proxy->stop();
    }

    public function testAnAgentWhoseConnectionsAreDroppedSilentlyKeepsItsLease(): void
    {
        $log = $this->path('log');
        $proxy = $this->proxy();
        $agent = $this->agentAt($this->addressAt($proxy), $this->queue(), 2, 10.0, 1.0, 3.0);
        for ($i = 1; $i <= Scale::of(20); ++$i) {
            $open = $this->path("open-{$i}");
            $future = $this->executor()->submit(static fn(): int => LoggedTasks::runUntil($log, $i, $open));
            Eventually::holds(static fn(): bool => (LoggedTasks::started($log)[$i] ?? 0) === 1, 'it runs', 20.0);
            $proxy->swallowOpen();
            $before = $proxy->connections;
            Eventually::holds(static fn(): bool => $proxy->connections > $before, 'it connects anew', 20.0);
            touch($open);

            self::assertSame($i, $future->await());
        }
        self::assertSame([1], array_unique(array_values(LoggedTasks::started($log))));
        self::assertSame([0, 0], [$this->statistics()['lost_total'], $this->statistics()['retried_total']]);
        $this->stop($agent);
        $proxy->stop();
    }

    #[RequiresOperatingSystemFamily('Linux')]
    public function testAnAnswerThatTakesLongerThanTheTimeoutArrivesAsLongAsBytesDo(): void
    {
        $direct = new RedisBroker(Redis::shared()->url());
        $large = str_repeat('x', 8 << 20);
        $direct->submit($this->queue(), [new Job('large', 'frame')], 10, 'nobody', false);
        $direct->renewLease($this->queue(), 'owner', 10.0, true, '{}');
        $claim = $direct->settleAndClaim($this->queue(), 'owner', [], 1, 60.0);
        $direct->settleAndClaim(
            $this->queue(),
            'owner',
            [new Settlement('large', $claim->deliveries[0]->claimNumber, SettlementKind::Done, frame: $large)],
            0,
            60.0,
        );
        $proxy = $this->proxy();
        $broker = new RedisBroker($this->addressAt($proxy), timeout: 2.0);
        $broker->statistics($this->queue());
        $proxy->slice(1 << 15);
        $proxy->delay(0.015);
        $begin = microtime(true);

        self::assertSame($large, $broker->attach($this->queue(), ['large'], 'nobody')['large']->outcome);
        self::assertGreaterThan(2.5, microtime(true) - $begin);
    }

    public function testAgentsWithTheSameHostNameAndProcessIdAreTwo(): void
    {
        if (
            posix_geteuid() !== 0
            || !\is_string($unshare = shell_exec('command -v unshare'))
            || shell_exec('unshare --uts --pid --fork --mount-proc true && echo yes') === null
        ) {
            self::markTestSkipped('Needs unshare (util-linux), and root that may make namespaces');
        }
        $within = [
            trim($unshare),
            '--uts',
            '--pid',
            '--fork',
            '--kill-child',
            '--mount-proc',
            'sh',
            '-c',
            'echo clone > /proc/sys/kernel/hostname && exec "$@"',
            'sh',
        ];
        $clones = [];
        for ($i = 0; $i < 2; ++$i) {
            $clones[] = Host::start(
                AgentProgram::class . '::run',
                [Redis::shared()->url(), $this->queue(), 1, ...self::SHORT],
                $within,
            );
        }
        $log = $this->path('log');
        $open = $this->path('open');
        $executor = $this->executor();
        $futures = [$executor->submit(static fn(): int => LoggedTasks::runUntil($log, 1, $open))];
        $futures[] = $executor->submit(static fn(): int => LoggedTasks::runUntil($log, 2, $open));
        Eventually::holds(static fn(): bool => \count(LoggedTasks::started($log)) === 2, 'each runs one', 10.0);
        $owners = array_column($this->broker()->listJobs($this->queue(), JobStatus::Running, 10), 'owner');
        $names = array_map(
            static fn(mixed $owner): string => (string) preg_replace('/[^:]*$/', '', (string) $owner),
            $owners,
        );
        self::assertSame(['clone:1:', 'clone:1:'], $names);
        self::assertCount(2, array_unique($owners));

        $this->kill($clones[0]);
        Eventually::holds(
            fn(): bool => $this->statistics()['agents'] === 1 && $this->statistics()['lost_total'] === 1,
            'one lease has ended',
        );
        touch($open);

        self::assertSame([1, 2], [$futures[0]->await(), $futures[1]->await()]);
        self::assertSame([1, 2], self::sorted(LoggedTasks::started($log)), 'only one of them ran again');
        $this->kill($clones[1]);
    }

    public function testAJobThatKillsEveryWorkerIsADeadLetterWithAllDetails(): void
    {
        $executor = $this->executor();
        $log = $this->path('log');
        $this->agent($this->queue());
        $poison = $executor->dispatch(static fn() => LoggedTasks::die('the last words'));
        $others = self::submitMany($executor, $log, 100);
        $crashed = self::thrown(WorkerCrashedException::class, static fn() => $executor->attach($poison)->await());
        self::assertSame([\SIGKILL, 3, 'the last words'], [$crashed->signal, $crashed->attempts, $crashed->stderr]);
        self::assertSame(5050, array_sum(await($others)));

        $dead = $this->broker()->listJobs($this->queue(), JobStatus::Dead, 1, $poison);
        self::assertSame([$poison], array_keys($dead));
        self::assertSame(3, $dead[$poison]['attempts']);
        self::assertStringContainsString('signal 9', (string) $dead[$poison]['reason']);
        self::assertStringContainsString('the last words', (string) $dead[$poison]['reason']);
    }

    /**
     * @param list<float> $lease
     *
     * @return array{FaultyProxy, Process, Future<mixed>, string} an agent behind the proxy, whose only task waits for
     *                                                            "open"
     */
    private function heldUp(array $lease = self::SHORT): array
    {
        $log = $this->path('log');
        $file = $this->path('open');
        $proxy = $this->proxy();
        $agent = $this->agentAt($this->addressAt($proxy), $this->queue(), 2, ...$lease);
        $future = $this->executor()->submit(static fn(): int => LoggedTasks::runUntil($log, 7, $file));
        Eventually::holds(static fn(): bool => LoggedTasks::started($log) !== [], 'it runs');

        return [$proxy, $agent, $future, $log];
    }

    /** Drops all answers from now on. The agent waits for no earlier one, which would hold up what it sends next. */
    private static function mute(FaultyProxy $proxy): void
    {
        Eventually::holds(
            static fn(): bool => hrtime(true) - $proxy->lastPassed() > self::QUIET_NANOSECONDS,
            'the agent waits for no answer',
        );
        $proxy->mute();
    }

    private function proxy(): FaultyProxy
    {
        return new FaultyProxy('tcp://127.0.0.1:' . Redis::shared()->port);
    }

    private function addressAt(FaultyProxy $proxy): string
    {
        return 'redis://:' . Redis::shared()->password . "@127.0.0.1:{$proxy->port}";
    }

    /** @return list<Future<mixed>> */
    private static function submitMany(RemoteExecutor $executor, string $log, int $tasks): array
    {
        $submit = static fn(int $number): mixed => $executor->submit(self::numbered($log, $number))->await();

        return array_map(static fn(int $number): Future => async($submit, $number), range(1, $tasks));
    }

    /** @return \Closure(): int */
    private static function numbered(string $log, int $number): \Closure
    {
        return static fn(): int => LoggedTasks::run($log, 1000 + $number) - 1000;
    }

    /**
     * @param array<int, int> $counts
     *
     * @return list<int>
     */
    private static function sorted(array $counts): array
    {
        sort($counts);

        return $counts;
    }

    private function kill(Process $process): void
    {
        $process->signal(\SIGKILL);
        while ($process->isRunning()) {
            delay(0.005);
        }
    }

    /** Returns the number of stored items of a job. */
    private function itemsOf(string $id): int
    {
        $count = Redis::shared()->command('XLEN', "spindle:{{$this->queue()}}:items:{$id}");

        return \is_int($count) ? $count : -1;
    }

    private function queue(): string
    {
        return $this->queue === '' ? $this->queue = self::newQueue() : $this->queue;
    }

    private function executor(): RemoteExecutor
    {
        return new RemoteExecutor($this->broker(), $this->queue(), self::keys(), new JobRetryPolicy(delay: 0.05));
    }

    private function broker(): RedisBroker
    {
        return new RedisBroker(Redis::shared()->url());
    }

    /** @return array<string, int> */
    private function statistics(): array
    {
        return $this->broker()->statistics($this->queue());
    }
}

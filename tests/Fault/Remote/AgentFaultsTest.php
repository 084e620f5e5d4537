<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Remote;

use PHPUnit\Framework\TestCase;
use Spindle\Remote\InvalidSignatureException;
use Spindle\Remote\JobLostException;
use Spindle\Remote\JobRetryPolicy;
use Spindle\Remote\JobStatus;
use Spindle\Remote\RedisBroker;
use Spindle\Remote\RemoteExecutor;
use Spindle\Remote\ResultTooLargeException;
use Spindle\Remote\SigningKeys;
use Spindle\Remote\Testing\TemporaryRedis;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\Eventually;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Remote\Redis;
use Spindle\Tests\Remote\RunsAgents;
use Spindle\Tests\Scale;
use Spindle\Worker\TaskContext;
use Spindle\Worker\TaskFailedException;
use Spindle\Worker\WorkerCrashedException;

use function Amp\async;

/** Processes that die between a task and its outcome. */
final class AgentFaultsTest extends TestCase
{
    use CatchesThrown;
    use EndsInTime;
    use OwnDirectory;
    use RunsAgents;

    /** Short lease, heartbeat and lease margin in seconds. */
    private const SHORT = [2.0, 0.2, 0.8];

    /** A lease that does not end while large values fill the connection to the engine. */
    private const LONG = [60.0, 1.0, 3.0];

    private string $queue = '';

    protected function deadline(): int
    {
        return 180 + 10 * Scale::of(20);
    }

    public function testATaskWhoseWorkerIsKilledRunsAgain(): void
    {
        $executor = $this->executor();
        $this->agent($this->queue());
        for ($i = 1; $i <= Scale::of(200); ++$i) {
            $directory = $this->directory("worker{$i}");
            $future = $executor->submit(static fn(): int => RecordedTasks::linger($directory));
            posix_kill($this->started($directory, 1), \SIGKILL);

            self::assertSame(2, $future->await());
        }
        self::assertSame(0, $this->statistics()['died_total']);
    }

    public function testAnAgentOutlivesLargeResultsOfAllItsWorkersTogether(): void
    {
        $executor = $this->executor();
        $agent = $this->agentWithin(
            [],
            ['SPINDLE_TEST_AGENT_MEMORY' => '128M'],
            Redis::shared()->url(),
            $this->queue(),
            8,
            ...self::LONG,
        );
        $directory = $this->directory('ready');
        $innocent = $executor->submit(static fn(): string => 'small');
        $futures = array_map(static fn(int $i) => $executor->submit(static function () use ($directory, $i): mixed {
            touch("{$directory}/{$i}");
            for ($end = microtime(true) + 20; \count((array) glob("{$directory}/*")) < 8 && microtime(true) < $end;) {
                usleep(1000);
            }

            return str_repeat(\chr(64 + $i), 12 << 20);
        }), range(1, 8));
        foreach ($futures as $i => $future) {
            $result = $future->await();
            self::assertSame([12 << 20, \chr(65 + $i)], [\strlen($result), $result[0]]);
        }
        $large = $executor->submit(static fn(): string => str_repeat('x', 40 << 20));
        $tooLarge = self::thrown(ResultTooLargeException::class, static fn() => $large->await());
        self::assertStringContainsString((string) (40 << 20), $tooLarge->getMessage());
        self::assertSame('small', $innocent->await());
        self::assertSame([9, 0], [$this->statistics()['done_total'], $this->statistics()['lost_total']]);
        $this->stop($agent);
    }

    public function testAnAgentOutlivesLargeItemsAndReportsOfAllItsWorkersTogether(): void
    {
        $executor = $this->executor();
        $agent = $this->agentWithin(
            [],
            ['SPINDLE_TEST_AGENT_MEMORY' => '128M'],
            Redis::shared()->url(),
            $this->queue(),
            8,
            ...self::LONG,
        );
        $readers = array_map(static fn(int $i) => async(static function () use ($executor, $i): array {
            $sizes = [];
            /** @var \Generator<int, non-empty-string, mixed, void> $items */
            $items = $executor->submit(static function () use ($i): \Generator {
                for ($k = 0; $k < 2; ++$k) {
                    yield str_repeat(\chr(64 + $i), 12 << 20);
                }
            })->await();
            foreach ($items as $item) {
                $sizes[] = $item[0] . \strlen($item);
            }

            return $sizes;
        }), range(1, 7));
        $reports = $executor->submit(static function (): string {
            for ($i = 0; $i < 30; ++$i) {
                TaskContext::current()->report(str_repeat('r', 5 << 20));
            }

            return 'reported';
        });
        foreach ($readers as $i => $reader) {
            self::assertSame(array_fill(0, 2, \chr(65 + $i) . (12 << 20)), $reader->await());
        }
        self::assertSame('reported', $reports->await());
        self::assertSame([8, 0], [$this->statistics()['done_total'], $this->statistics()['lost_total']]);
        $this->stop($agent);
    }

    public function testTheTasksOfAnAgentThatIsKilledRunOnAnother(): void
    {
        $executor = $this->executor();
        for ($i = 1; $i <= Scale::of(20); ++$i) {
            $directory = $this->directory("agent{$i}");
            $agent = $this->agent($this->queue(), 2, ...self::SHORT);
            $future = $executor->submit(static fn(): int => RecordedTasks::linger($directory));
            $this->started($directory, 1);
            $agent->signal(\SIGKILL);
            $other = $this->agent($this->queue(), 2, ...self::SHORT);

            self::assertSame(2, $future->await());
            $this->stop($other);
        }
        self::assertSame(Scale::of(20), $this->statistics()['lost_total']);
    }

    public function testALaterReaderHasTheItemsThatAKilledAgentHasStored(): void
    {
        $executor = $this->executor();
        $agent = $this->agent($this->queue(), 1, ...self::SHORT);
        $id = $executor->dispatch(static function (): \Generator {
            yield 'a' => 1;
            yield 'b' => 2;
            for (;;) {
                usleep(10_000);
            }
        });
        $stored = "spindle:{{$this->queue()}}:items:{$id}";
        Eventually::holds(static fn(): bool => Redis::shared()->command('XLEN', $stored) === 2, 'items are stored');
        $agent->signal(\SIGKILL);
        $other = $this->agent($this->queue(), 1, ...self::SHORT);
        $isDead = static fn(): bool => $executor->status($id) === JobStatus::Dead;
        Eventually::holds($isDead, 'another agent has found the loss', 20.0);
        $items = $executor->attach($id)->await();
        self::assertInstanceOf(\Generator::class, $items);
        /** @var list<array{mixed, mixed}> $seen */
        $seen = [];
        try {
            foreach ($items as $key => $item) {
                $seen[] = [$key, $item];
            }
            self::fail('The items end with an exception');
        } catch (WorkerCrashedException $crashed) {
            self::assertStringContainsString('its agent was lost', $crashed->getMessage());
        }
        self::assertSame([['a', 1], ['b', 2]], $seen);
        $this->stop($other);
    }

    public function testAnAgentThatWasStoppedForLongSettlesNothingAndGoesOn(): void
    {
        $executor = $this->executor();
        $directory = $this->directory('stopped');
        $stopped = $this->agent($this->queue(), 2, ...self::SHORT);
        // the worker finishes it during that time
        $future = $executor->submit(static fn(): int => RecordedTasks::linger($directory, 1, 0.5));
        $this->started($directory, 1);
        $stopped->signal(\SIGSTOP);
        $other = $this->agent($this->queue(), 2, ...self::SHORT);

        self::assertSame(2, $future->await());
        $this->stop($other);
        $stopped->signal(\SIGCONT);
        self::assertSame(7, $executor->submit(static fn(): int => 7)->await());
        self::assertSame(2, $this->statistics()['done_total']);
    }

    public function testAnAgentThatStopsFinishesWhatRunsAndGivesBackTheRest(): void
    {
        $executor = $this->executor();
        $first = $this->directory('first');
        $second = $this->directory('second');
        $agent = $this->agent($this->queue(), 1);
        $running = $executor->submit(static fn(): int => RecordedTasks::linger($first, 1, 0.5));
        $this->started($first, 1);
        $agent->signal(\SIGTERM);
        $waiting = $executor->submit(static fn(): int => RecordedTasks::linger($second, 0));

        self::assertSame(1, $running->await());
        Eventually::holds(static fn(): bool => !$agent->isRunning(), 'it has ended');
        $this->agent($this->queue());
        self::assertSame(1, $waiting->await(), 'it was no attempt');
    }

    public function testAPoisonJobHarmsNoOther(): void
    {
        $executor = $this->executor();
        $this->agent($this->queue());
        $poison = $executor->dispatch([RecordedTasks::class, 'die']);
        $count = Scale::of(10_000);

        self::assertSame(
            $count * ($count + 1) / 2,
            array_sum(iterator_to_array($executor->mapUnordered(range(1, $count), abs(...)), false)),
        );
        $crashed = self::thrown(WorkerCrashedException::class, static fn() => $executor->attach($poison)->await());
        self::assertSame([\SIGKILL, 3], [$crashed->signal, $crashed->attempts]);
        $dead = (new RedisBroker(Redis::shared()->url()))->listJobs($this->queue(), JobStatus::Dead, 10);
        self::assertSame([$poison], array_keys($dead));
        self::assertStringContainsString('signal 9', (string) $dead[$poison]['reason']);
    }

    public function testAnExceptionWithoutAMessageIsReportedWithItsPlace(): void
    {
        $executor = $this->executor();
        $this->agent($this->queue());
        $id = $executor->dispatch(static fn() => throw new \RuntimeException());
        $line = __LINE__ - 1;
        self::thrown(TaskFailedException::class, static fn() => $executor->attach($id)->await());
        $dead = (new RedisBroker(Redis::shared()->url()))->listJobs($this->queue(), JobStatus::Dead, 1, $id);

        self::assertStringStartsWith(
            'closure at ' . __FILE__ . ":{$line}: RuntimeException: no message (" . __FILE__ . ":{$line})\n",
            (string) $dead[$id]['reason'],
        );
    }

    public function testAnEngineThatIsKilledLosesNothing(): void
    {
        $redis = TemporaryRedis::start(['appendfsync' => 'always']);
        $this->agentAt($redis->url(), $this->queue());
        $executor = $this->executor($redis);
        $count = 2000;
        $sum = $seen = 0;
        foreach ($executor->mapUnordered(range(1, $count), abs(...)) as $value) {
            $sum += $value;
            if (++$seen % 500 === 250) {
                $redis->kill();
                $redis->restart();
            }
        }

        self::assertSame($count * ($count + 1) / 2, $sum);
        $this->stopAgents();
        $redis->stop();
    }

    public function testAJobThatARestartedEmptyEngineDoesNotHaveIsReportedAsLost(): void
    {
        $redis = TemporaryRedis::start();
        $future = $this->executor($redis)->submit(static fn(): int => 1);
        $redis->command('FLUSHALL');
        $redis->restart();
        $lost = self::thrown(JobLostException::class, static fn() => $future->await());
        self::assertStringContainsString($this->queue(), $lost->getMessage());
        self::assertStringContainsString('or the engine has lost its data', $lost->getMessage());
        $redis->stop();
    }

    public function testAFrameThatWasTamperedWithIsRefusedUnread(): void
    {
        $redis = Redis::shared();
        $executor = $this->executor();
        $file = $this->path('harm');
        $ids = [];
        foreach (['flipped', 'unsigned', 'of another'] as $how) {
            $ids[$how] = $executor->dispatch(static fn(): int => 1);
        }
        $jobs = "spindle:{{$this->queue()}}:jobs";
        $frame = $redis->command('HGET', $jobs, $ids['flipped']);
        self::assertIsString($frame);
        $another = $redis->command('HGET', $jobs, $executor->dispatch(static fn(): int => 2));
        self::assertIsString($another);
        $frame[60] = $frame[60] ^ "\1";
        $redis->command('HSET', $jobs, $ids['flipped'], $frame);
        $unsigned = substr($frame, 0, 42) . serialize(new UnserializableEffect($file));
        $redis->command('HSET', $jobs, $ids['unsigned'], $unsigned);
        $redis->command('HSET', $jobs, $ids['of another'], $another);
        $this->agent($this->queue());
        foreach ($ids as $how => $id) {
            $refused = self::thrown(InvalidSignatureException::class, static fn() => $executor->attach($id)->await());
            self::assertStringContainsString($id, $refused->getMessage());
        }

        self::assertFileDoesNotExist($file);
        self::assertSame(3, $this->statistics()['dead']);
    }

    public function testAnOutcomeThatIsSignedWithAnotherKeyIsRefused(): void
    {
        $id = $this->executor()->dispatch(static fn(): int => 1);
        $this->agent($this->queue());
        $stranger = new RemoteExecutor(
            new RedisBroker(Redis::shared()->url()),
            $this->queue(),
            new SigningKeys([str_repeat('another key', 3)]),
        );

        $this->expectException(InvalidSignatureException::class);
        $stranger->attach($id)->await();
    }

    private function queue(): string
    {
        return $this->queue === '' ? $this->queue = self::newQueue() : $this->queue;
    }

    private function executor(?TemporaryRedis $redis = null): RemoteExecutor
    {
        return new RemoteExecutor(
            new RedisBroker(($redis ?? Redis::shared())->url()),
            $this->queue(),
            self::keys(),
            new JobRetryPolicy(delay: 0.05),
        );
    }

    /** @return array<string, int> */
    private function statistics(): array
    {
        return (new RedisBroker(Redis::shared()->url()))->statistics($this->queue());
    }

    private function directory(string $name): string
    {
        $directory = $this->path($name);
        mkdir($directory);

        return $directory;
    }

    /** @return int process id of the worker that runs the attempt */
    private function started(string $directory, int $attempt): int
    {
        Eventually::holds(
            static fn(): bool => is_file("{$directory}/{$attempt}"),
            "the attempt {$attempt} has started",
        );

        return (int) file_get_contents("{$directory}/{$attempt}");
    }
}

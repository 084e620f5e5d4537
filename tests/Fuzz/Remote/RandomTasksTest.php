<?php

declare(strict_types=1);

namespace Spindle\Tests\Fuzz\Remote;

use Amp\Cancellation;
use Amp\CancelledException;
use Amp\DeferredCancellation;
use Amp\TimeoutCancellation;
use Random\Engine\Mt19937;
use Random\Randomizer;
use Revolt\EventLoop;
use Spindle\Remote\Job;
use Spindle\Remote\JobRetryPolicy;
use Spindle\Remote\RedisBroker;
use Spindle\Remote\RemoteExecutor;
use Spindle\Remote\RemoteOptions;
use Spindle\Remote\Testing\TemporaryRedis;
use Spindle\Tests\Eventually;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Remote\RunsAgents;
use Spindle\Tests\Scale;
use Spindle\Tests\TidyTestCase;
use Spindle\Worker\ExecutorClosedException;
use Symfony\Component\Process\Process;

use function Amp\async;
use function Amp\Future\await;

/**
 * Random tasks of all sizes are submitted, dispatched, mapped and cancelled in random order, while agents and the
 * engine are killed and suspended. Each task has one possible outcome, and nothing is left in the engine.
 */
final class RandomTasksTest extends TidyTestCase
{
    use OwnDirectory;
    use RunsAgents;

    private const FIBERS = 12;
    private const FAULT_EVERY = 15;

    /** Lease, heartbeat and lease margin in seconds. */
    private const LEASE = [3.0, 0.3, 1.0];

    /** Seconds in which each task has an outcome, even if faults delay it. */
    private const DEADLINE = 100.0;

    private const EMPTY_KEYS = ['jobs', 'running', 'tried', 'delayed', 'keys', 'watchers', 'audit'];
    private const KEPT_KEYS
        = '/^(?:meta|agents|about|idle|begun|spared|ready|urgent|dead|reason|deadkeys|died|auditor|late:.*)$/';

    private string $queue = '';
    private TemporaryRedis $redis;
    private Randomizer $random;
    private RemoteExecutor $executor;
    private RemoteExecutor $other;

    /** @var list<Process> */
    private array $running = [];

    /** @var list<string> ids of dispatched tasks, whose outcomes stay */
    private array $dispatched = [];

    /** @var list<string> */
    private array $problems = [];

    private int $operations = 0;

    protected function deadline(): int
    {
        return 240 + intdiv(Scale::of(2000), 4);
    }

    protected function setUp(): void
    {
        $this->queue = self::newQueue();
        $this->redis = TemporaryRedis::start(['appendfsync' => 'always']);
        $this->random = new Randomizer(new Mt19937(Scale::seed()));
        [$this->executor, $this->other] = [$this->newExecutor(), $this->newExecutor()];
    }

    public function testEachTaskHasOneOutcomeAndLeavesNothing(): void
    {
        $this->startAgent();
        $this->startAgent();
        await(array_map(fn(): \Amp\Future => async($this->operate(...)), range(1, self::FIBERS)));
        foreach ([$this->executor, $this->other] as $executor) {
            $executor->close(new TimeoutCancellation(self::DEADLINE));
        }
        $broker = new RedisBroker($this->redis->url());
        Eventually::holds(function () use ($broker): bool {
            $numbers = $broker->statistics($this->queue);

            return $numbers['waiting'] + $numbers['running'] + $numbers['delayed'] + $numbers['blocked'] === 0;
        }, 'the queue is empty', self::DEADLINE);

        self::assertSame([], $this->problems);
        $leftovers = implode(', ', $this->leftovers());
        Eventually::holds(fn(): bool => $this->leftovers() === [], "the engine drops what is left: {$leftovers}");
        self::assertSame(
            (int) $this->answer('HGET', $this->key('meta'), 'entries'),
            (int) $this->answer('XLEN', $this->key('ready')) + (int) $this->answer('XLEN', $this->key('urgent')),
        );
        foreach ($this->running as $agent) {
            $this->stop($agent);
            self::assertSame(0, $agent->getExitCode(), $agent->getErrorOutput());
        }
        $this->redis->stop();
    }

    private function operate(): void
    {
        while ($this->operations < Scale::of(2000)) {
            $number = ++$this->operations;
            if ($number % self::FAULT_EVERY === 0) {
                $this->fault();
            }
            $deadline = new TimeoutCancellation(self::DEADLINE);
            try {
                match ($this->random->getInt(0, 5)) {
                    0 => $this->submit($number, $deadline),
                    1 => $this->cancel($number, $deadline),
                    2 => $this->dispatch($number, $deadline),
                    3 => $this->map($number, $deadline),
                    4 => $this->end($number, $deadline),
                    default => $this->failInput($number, $deadline),
                };
            } catch (\Throwable $failure) {
                $this->problems[] = "operation {$number}: " . $failure::class . ": {$failure->getMessage()}";
            }
        }
    }

    private function submit(int $number, Cancellation $deadline): void
    {
        $task = RandomTask::any($this->random, $number);
        $this->check($task, fn(): mixed => $this->executor->submit($task->run(...))->await($deadline));
    }

    private function cancel(int $number, Cancellation $deadline): void
    {
        $task = RandomTask::any($this->random, $number);
        $cancelling = new DeferredCancellation();
        $delay = $this->random->getInt(0, 3) === 0 ? 0.0 : $this->random->getInt(1, 300) / 1000;
        $timer = EventLoop::delay($delay, static fn() => $cancelling->cancel());
        try {
            $this->check($task, fn(): mixed => $this->executor
                ->submit($task->run(...), $cancelling->getCancellation())
                ->await($deadline));
        } catch (CancelledException $cancelled) {
            $deadline->throwIfRequested();
            EventLoop::cancel($timer);
        }
    }

    private function dispatch(int $number, Cancellation $deadline): void
    {
        $task = RandomTask::any($this->random, $number, true);
        $ids = ["{$number}", "#{$number}", "-{$number}", "{a}:{$number},", str_pad("{$number}-", 128, '~')];
        $id = $ids[$this->random->getInt(0, 4)];
        $key = ['', 'key', "\xFF}\0"][$this->random->getInt(0, 2)];
        $this->dispatched[] = $id;
        $this->executor->dispatch($task->run(...), $id, $key, $this->random->getInt(0, 200) / 1000, $deadline);
        $this->check($task, fn(): mixed => $this->other->attach($id)->await($deadline));
    }

    private function map(int $number, Cancellation $deadline): void
    {
        $tasks = [];
        for ($i = $this->random->getInt(0, 20); $i > 0; --$i) {
            $tasks["{$number}-{$i}"] = RandomTask::any($this->random, $i, true);
        }
        $breakAt = $this->random->getInt(0, 40);
        $run = static fn(RandomTask $task): mixed => $task->run();
        $outcomes = $this->random->getInt(0, 1) === 0
            ? $this->executor->mapOutcomes($tasks, $run, $deadline)
            : $this->executor->mapOutcomesUnordered($tasks, $run, $deadline);
        $seen = [];
        foreach ($outcomes as $key => $outcome) {
            $seen[] = $key;
            $this->check($tasks[$key], static fn(): mixed => $outcome->value());
            if (\count($seen) === $breakAt) {
                return;
            }
        }
        sort($seen);
        $expected = array_keys($tasks);
        sort($expected);
        if ($seen !== $expected) {
            $this->problems[] = "map {$number} yielded " . implode(' ', $seen);
        }
    }

    /** Closes or kills an executor at any time. All its futures end. */
    private function end(int $number, Cancellation $deadline): void
    {
        $executor = $this->newExecutor();
        $ended = [];
        for ($i = 0; $i < 4; ++$i) {
            $task = RandomTask::any($this->random, $number);
            $ended[] = async(function () use ($executor, $task, $deadline): void {
                try {
                    $this->check($task, static fn(): mixed => $executor->submit($task->run(...))->await($deadline));
                } catch (ExecutorClosedException) {
                    // The executor was killed before the task had an outcome.
                }
            });
        }
        $ending = async($this->random->getInt(0, 1) === 0 ? $executor->kill(...) : $executor->close(...));
        await([...$ended, $ending], $deadline);
    }

    private function failInput(int $number, Cancellation $deadline): void
    {
        $count = $this->random->getInt(1, 10);
        $input = static function () use ($count): \Generator {
            yield from range(1, $count);

            throw new \UnderflowException('input');
        };
        [$seen, $failure] = self::drain($this->executor->map($input(), abs(...), $deadline));
        if ($seen !== range(1, $count) || !$failure instanceof \UnderflowException) {
            $this->problems[] = "operation {$number}: " . \count($seen) . " results of {$count} inputs, "
                . ($failure === null ? 'no failure' : $failure::class);
        }
    }

    /**
     * @param \Generator<mixed, mixed> $results
     *
     * @return array{list<mixed>, \Throwable|null}
     */
    private static function drain(\Generator $results): array
    {
        $seen = [];
        try {
            foreach ($results as $result) {
                $seen[] = $result;
            }
        } catch (\Throwable $failure) {
            return [$seen, $failure];
        }

        return [$seen, null];
    }

    /** @param \Closure(): mixed $result */
    private function check(RandomTask $task, \Closure $result): void
    {
        $value = $failure = null;
        try {
            $value = RandomTask::read($result());
        } catch (CancelledException|ExecutorClosedException $ended) {
            throw $ended;
        } catch (\Throwable $failure) {
        }
        $problem = $task->check($value, $failure);
        if ($problem !== null) {
            $this->problems[] = $problem;
        }
    }

    private function fault(): void
    {
        $agent = $this->running[0];
        switch ($this->random->getInt(0, 3)) {
            case 0:
                $agent->signal(\SIGKILL);
                array_shift($this->running);
                $this->startAgent();

                break;
            case 1:
                $agent->signal(\SIGSTOP);
                EventLoop::delay($this->random->getInt(1, 40) / 10, static function () use ($agent): void {
                    if ($agent->isRunning()) {
                        $agent->signal(\SIGCONT);
                    }
                });
                $this->running = array_reverse($this->running);

                break;
            case 2:
                $this->redis->kill();
                $this->redis->restart();

                break;
            default:
                posix_kill((int) $this->redis->pid(), \SIGSTOP);
                EventLoop::delay($this->random->getInt(1, 10) / 10, function (): void {
                    posix_kill((int) $this->redis->pid(), \SIGCONT);
                });
        }
    }

    private function startAgent(): void
    {
        $environment = ['SPINDLE_TEST_MAX_RESULT' => (string) RandomTask::MAX_RESULT_BYTES];
        $this->running[] = $this->agentWithin([], $environment, $this->redis->url(), $this->queue, 2, ...self::LEASE);
    }

    private function newExecutor(): RemoteExecutor
    {
        // A task that exits has few attempts. Lost agents would use them up, so a task may crash often.
        return new RemoteExecutor(
            new RedisBroker($this->redis->url()),
            $this->queue,
            self::keys(),
            new JobRetryPolicy(RandomTask::ATTEMPTS, 10, 0.05, 1.0, 0.05),
            new RemoteOptions(brokerRetryTimeout: self::DEADLINE),
        );
    }

    private function key(string $name): string
    {
        return "spindle:{{$this->queue}}:{$name}";
    }

    private function answer(string ...$command): string
    {
        $answer = $this->redis->command(...$command);

        return \is_scalar($answer) ? (string) $answer : '';
    }

    /** @return list<string> keys of the engine that should not exist */
    private function leftovers(): array
    {
        $keys = $this->redis->command('KEYS', '*');
        $found = [];
        foreach (\is_array($keys) ? $keys : [] as $key) {
            $name = \is_string($key) ? substr($key, \strlen($this->key(''))) : '';
            [$kind, $id] = explode(':', $name, 2) + ['', ''];
            $isOutcome = \in_array($kind, ['result', 'task', 'items'], true);
            $seconds = (int) $this->answer('TTL', $this->key($name));
            // The outcome of a task that was cancelled while it ran stays for a minute.
            $isKept = $isOutcome
                ? $seconds > 0 && ($seconds <= 60 || \in_array(Job::givenId($id), $this->dispatched, true))
                : preg_match(self::KEPT_KEYS, $name) === 1;
            if (!$isKept || \in_array($name, self::EMPTY_KEYS, true)) {
                $found[] = "{$name} ({$seconds} s)";
            }
        }

        return $found;
    }
}

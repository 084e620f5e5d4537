<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Remote;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use Amp\Future;
use Amp\TimeoutCancellation;
use PHPUnit\Framework\Attributes\TestWith;
use Spindle\Command\Command;
use Spindle\Command\CommandPool;
use Spindle\Command\CommandPoolOptions;
use Spindle\Remote\JobCancelledException;
use Spindle\Remote\JobConflictException;
use Spindle\Remote\JobStatus;
use Spindle\Remote\RedisBroker;
use Spindle\Remote\RemoteCommands;
use Spindle\Remote\RemoteExecutor;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\Conformance\Worker\Task\Gate;
use Spindle\Tests\Conformance\Worker\Task\WorkerTasks;
use Spindle\Tests\Eventually;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Remote\Redis;
use Spindle\Tests\Remote\RunsAgents;
use Spindle\Tests\Text;
use Spindle\Tests\TidyTestCase;
use Spindle\Worker\ExecutorClosedException;
use Spindle\Worker\MapOutcome;

use function Amp\async;

/** Dispatched tasks that are cancelled, and waits for them that are cancelled. */
final class CancelledTasksTest extends TidyTestCase
{
    use CatchesThrown;
    use OwnDirectory;
    use RunsAgents;

    private string $queue = '';

    public function testACancelledWaitLeavesTheTaskAndCanBeginAgain(): void
    {
        $executor = $this->executor();
        $gate = new Gate($this->path('gate'));
        $this->agent($this->queue);
        $id = $executor->dispatch(static fn(): string => $gate->pass(ends: true));
        $gate->awaitTasks(1);
        $cancellation = new DeferredCancellation();
        $wait = $executor->attach($id, $cancellation->getCancellation());
        $other = $executor->attach($id);
        $cancellation->cancel();

        self::assertEndedByItsCancellation($wait);
        self::assertSame(JobStatus::Running, $executor->status($id));
        $gate->open();
        self::assertSame(['task', 'task'], [$executor->attach($id)->await(), $other->await()]);
        self::assertSame([1, 0], [$this->statistic('done_total'), $this->statistic('cancelled_total')]);
    }

    public function testACancelledWaitForItemsLeavesTheTask(): void
    {
        $executor = $this->executor();
        $gate = new Gate($this->path('gate'));
        $this->agent($this->queue);
        $id = $executor->dispatch(static function () use ($gate): \Generator {
            yield 1;
            $gate->pass(ends: true);
            yield 2;
        });
        $cancellation = new DeferredCancellation();
        $items = $executor->attach($id, $cancellation->getCancellation())->await();
        self::assertInstanceOf(\Generator::class, $items);
        self::assertSame(1, $items->current());
        $gate->awaitTasks(1);
        $next = async($items->next(...));
        $cancellation->cancel();

        self::assertEndedByItsCancellation($next);
        unset($items);
        $gate->open();
        Eventually::holds(static fn(): bool => $executor->status($id) === JobStatus::Done, 'it has ended', 20.0);
    }

    public function testACancelledTaskThatWaitedEndsEachWaitAndNeverRuns(): void
    {
        $executor = $this->executor();
        $gate = new Gate($this->path('gate'));
        $ids = [
            $executor->dispatch(static fn(): string => $gate->say('first'), '7', exclusiveKey: 'key'),
            $executor->dispatch(static fn(): string => $gate->say('second'), exclusiveKey: 'key', delay: 600.0),
        ];
        $other = $this->executor();
        $waits = [];
        foreach ($ids as $id) {
            $waits[] = $executor->attach($id);
            $waits[] = $other->attach($id);
        }
        self::assertNull($other->status('none')); // the lookups are answered
        foreach ($ids as $id) {
            self::assertTrue($other->cancel($id));
            self::assertFalse($other->cancel($id));
            self::assertSame(JobStatus::Cancelled, $executor->status($id));
        }
        foreach ([...$waits, ...array_map($executor->attach(...), $ids)] as $wait) {
            self::thrown(JobCancelledException::class, static fn() => $wait->await(new TimeoutCancellation(5.0)));
        }
        $this->agent($this->queue);
        self::assertSame(5, $executor->submit(static fn(): int => 5)->await());

        self::assertSame([], $gate->names());
        self::assertFalse($executor->cancel('unknown'));
        self::assertSame([2, 1], [$this->statistic('cancelled_total'), $this->statistic('done_total')]);
    }

    public function testTheIdOfACancelledTaskStaysInUse(): void
    {
        $executor = $this->executor();
        $gate = new Gate($this->path('gate'));
        $task = static fn(): string => $gate->pass(ends: true);
        $agent = $this->agent($this->queue, 1);
        foreach (['running', 'waiting'] as $id) {
            $executor->dispatch($task, $id);
            $gate->awaitTasks(1);
        }
        foreach (['waiting', 'running'] as $id) {
            self::assertTrue($executor->cancel($id));
            $isCancelled = static fn(): bool => $executor->status($id) === JobStatus::Cancelled;
            Eventually::holds($isCancelled, 'it is cancelled', 20.0);
            self::assertSame($id, $executor->dispatch($task, $id), 'as a repetition whose answer was lost');
            self::assertSame(JobStatus::Cancelled, $executor->status($id));
            self::thrown(JobConflictException::class, static fn() => $executor->dispatch('time', $id));
        }
        $this->stop($agent);

        self::assertSame([0, 2, 0], array_map($this->statistic(...), ['done_total', 'cancelled_total', 'waiting']));
    }

    public function testACancelledTaskThatRunsEnds(): void
    {
        $executor = $this->executor();
        $gate = new Gate($this->path('gate'));
        $this->agent($this->queue, 2);
        $first = $executor->dispatch(static fn(): string => $gate->pass('first', ends: true), exclusiveKey: 'key');
        $gate->awaitTasks(1);
        $second = $executor->dispatch(static fn(): string => $gate->pass('second', ends: true), exclusiveKey: 'key');
        $wait = $this->executor()->attach($first);
        self::assertTrue($executor->cancel($first));
        $cancelled = self::thrown(JobCancelledException::class, $wait->await(...));
        self::assertSame($first, $cancelled->id);
        self::assertSame([JobStatus::Cancelled, false], [$executor->status($first), $executor->cancel($first)]);
        // An agent of the version before stores no such key.
        Redis::shared()->command('DEL', "spindle:{{$this->queue}}:cancelled:{$first}");
        self::assertSame(JobStatus::Done, $executor->status($first));
        self::thrown(JobCancelledException::class, $executor->attach($first)->await(...));
        $gate->awaitTasks(2);
        $gate->open();

        self::assertSame('second', $executor->attach($second)->await());
        self::assertFalse($executor->cancel($second), 'it has ended');
        self::assertSame(JobStatus::Done, $executor->status($second));
    }

    public function testEachTaskOfARaceIsEitherDoneOrCancelled(): void
    {
        $executor = $this->executor();
        $other = $this->executor();
        $this->agent($this->queue, 2);
        $waits = $wereUnfinished = [];
        for ($i = 0; $i < 100; ++$i) {
            $id = $executor->dispatch(static fn(): string => "job-{$i}", "job-{$i}");
            $waits[$id] = $executor->attach($id);
            $hasBegun = static fn(): bool => $i % 5 === 0 || $other->status($id) !== JobStatus::Waiting;
            Eventually::holds($hasBegun, 'an agent has claimed it', 20.0);
            $wereUnfinished[$id] = $other->cancel($id);
        }
        $outcomes = ['done' => 0, 'cancelled' => 0];
        foreach ($waits as $id => $wait) {
            try {
                self::assertSame($id, $wait->await(new TimeoutCancellation(20.0)));
                $expected = JobStatus::Done;
            } catch (JobCancelledException $cancelled) {
                self::assertSame($id, $cancelled->id);
                self::assertTrue($wereUnfinished[$id]);
                $expected = JobStatus::Cancelled;
            }
            ++$outcomes[$expected->value];
            self::assertSame($expected, $executor->status($id));
            self::assertFalse($executor->cancel($id));
        }

        self::assertSame(
            $outcomes,
            ['done' => $this->statistic('done_total'), 'cancelled' => $this->statistic('cancelled_total')],
        );
    }

    public function testAnOperatorCanCancelASubmittedTask(): void
    {
        $executor = $this->executor();
        $submitted = $executor->submit('time');
        $mapped = async(static function () use ($executor): array {
            $areCancelled = [];
            foreach ($executor->mapOutcomes([1, 2], abs(...)) as $outcome) {
                $areCancelled[] = $outcome->failure instanceof JobCancelledException;
            }

            return $areCancelled;
        });
        $pool = new CommandPool(2, options: new CommandPoolOptions(
            transport: new RemoteCommands(new RedisBroker(Redis::shared()->url()), $this->queue, self::keys()),
        ));
        $command = async(static fn(): bool => $pool->execute(Command::of('true'))->cancelled);
        $broker = new RedisBroker(Redis::shared()->url());
        Eventually::holds(fn(): bool => $this->statistic('waiting') === 4, 'all are in the queue');
        $ids = array_keys($broker->listJobs($this->queue, JobStatus::Waiting, 10));
        $broker->cancelAndRecord($this->queue, $ids);

        self::thrown(JobCancelledException::class, static fn() => $submitted->await(new TimeoutCancellation(5.0)));
        self::assertSame([true, true], $mapped->await(new TimeoutCancellation(5.0)));
        self::assertTrue($command->await(new TimeoutCancellation(5.0)));
    }

    public function testACancelledLoopEndsTheGeneratorTaskThatItReads(): void
    {
        $executor = $this->executor();
        $this->agent($this->queue, 1);
        $cancellation = new DeferredCancellation();
        $loop = function () use ($executor, $cancellation): void {
            foreach ($executor->map([1], $this->hanging(), $cancellation->getCancellation()) as $items) {
                foreach ($items as $_) {
                    $this->awaitHangingTask();
                    $cancellation->cancel();
                }
            }
        };

        self::assertEndedByItsCancellation(async($loop));
        self::assertSame(5, $executor->submit(static fn(): int => 5)->await(new TimeoutCancellation(5.0)));
    }

    /** @param 'map'|'mapUnordered'|'mapOutcomes' $method */
    #[TestWith(['map'])]
    #[TestWith(['mapUnordered'])]
    #[TestWith(['mapOutcomes'])]
    public function testALoopThatIsLeftEndsTheGeneratorTaskThatItReads(string $method): void
    {
        $executor = $this->executor();
        $this->agent($this->queue, 1);
        $kept = null;
        $results = match ($method) {
            'map' => $executor->map([1], $this->hanging()),
            'mapUnordered' => $executor->mapUnordered([1], $this->hanging()),
            'mapOutcomes' => $executor->mapOutcomes([1], $this->hanging()),
        };
        foreach ($results as $items) {
            $kept = $items instanceof MapOutcome ? $items->value() : $items;
            self::assertSame(1, $kept->current());
            $this->awaitHangingTask();
            break;
        }
        unset($results); // ends the generator of the results
        self::assertSame(5, $executor->submit(static fn(): int => 5)->await(new TimeoutCancellation(5.0)));
        self::thrown(ExecutorClosedException::class, static fn() => $kept?->next());
    }

    public function testTheItemsOfACancelledSubmissionEndWithItsCancellation(): void
    {
        $executor = $this->executor();
        $this->agent($this->queue, 1);
        $cancellation = new DeferredCancellation();
        $task = $this->hanging();
        $items = $executor->submit(static fn(): \Generator => $task(1), $cancellation->getCancellation())->await();
        self::assertSame(1, $items->current());
        $this->awaitHangingTask();
        $cancellation->cancel();

        self::assertEndedByItsCancellation(async($items->next(...)));
        self::assertSame(1, $this->statistic('cancelled_total'));
    }

    /** @return \Closure(int): \Generator<int, int> */
    private function hanging(): \Closure
    {
        $pid = $this->path('pid');

        return static function (int $i) use ($pid): \Generator {
            yield $i;
            WorkerTasks::hang($pid);
        };
    }

    private function awaitHangingTask(): void
    {
        Eventually::holds(fn(): bool => Text::numbersIn($this->path('pid')) !== [], 'the task hangs', 10.0);
    }

    /** @param Future<mixed> $wait */
    private static function assertEndedByItsCancellation(Future $wait): void
    {
        $ended = self::thrown(CancelledException::class, static fn() => $wait->await(new TimeoutCancellation(5.0)));
        self::assertNotInstanceOf(JobCancelledException::class, $ended);
        self::assertNull($ended->getPrevious(), 'no timeout');
    }

    private function statistic(string $name): int
    {
        return (new RedisBroker(Redis::shared()->url()))->statistics($this->queue)[$name];
    }

    private function executor(): RemoteExecutor
    {
        $this->queue = $this->queue === '' ? self::newQueue() : $this->queue;

        return new RemoteExecutor(new RedisBroker(Redis::shared()->url()), $this->queue, self::keys());
    }
}

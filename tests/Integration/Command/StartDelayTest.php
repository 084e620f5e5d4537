<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Command;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use Amp\Future;
use PHPUnit\Framework\Attributes\DataProvider;
use Revolt\EventLoop;
use Revolt\EventLoop\CallbackType;
use Spindle\Command\Command;
use Spindle\Command\CommandPool;
use Spindle\Command\CommandPoolOptions;
use Spindle\Command\CommandResult;
use Spindle\Command\RetryPolicy;
use Spindle\LauncherException;
use Spindle\Tests\Async;
use Spindle\Tests\Eventually;
use Spindle\Tests\LauncherPhp;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\TidyTestCase;

/** Tests of CommandPoolOptions::$delay. */
final class StartDelayTest extends TidyTestCase
{
    use OwnDirectory;

    private const DELAY = 0.3;

    /** Minimum accepted seconds between two starts: processes on a busy machine read the clock late. */
    private const AT_LEAST = 0.2;

    public function testStartsOfAllRunsAreApart(): void
    {
        $pool = $this->pool(8);
        $true = Command::of('true');
        $runs = [
            Async::run(static fn(): array => iterator_to_array($pool->run([$true, $true]), false)),
            Async::run(static fn(): array => iterator_to_array($pool->runInOrder([$true, $true]), false)),
            Async::run(static fn(): array => [$pool->execute($true)]),
        ];
        $results = array_map(static fn(Future $run): array => $run->await(), $runs);

        self::assertApart(array_merge(...$results), 5);
    }

    public function testTheDelayHoldsWhileALauncherStarts(): void
    {
        $go = $this->path('go');
        $php = LauncherPhp::wrapper($this->path(), "until [ -e {$go} ]; do sleep 0.05; done");
        $pool = new CommandPool(4, options: new CommandPoolOptions(php: $php, delay: self::DELAY));
        $commands = array_fill(0, 3, Command::of('true'));
        $run = Async::run(static fn(): array => iterator_to_array($pool->run($commands)));
        $submitted = microtime(true);
        $mayStart = static fn(): bool => microtime(true) > $submitted + 3 * self::DELAY;
        Eventually::holds($mayStart, 'with a launcher, all could have started');
        touch($go);

        self::assertApart($run->await(), 3);
    }

    public function testTheDelayHoldsForCommandsThatWaitedForASlot(): void
    {
        $commands = [Command::of('sleep', '0.7'), Command::of('true'), Command::of('true')];

        self::assertApart(iterator_to_array($this->pool(1)->run($commands), false), 3);
    }

    public function testAnExecutionDoesNotWaitForAllCommandsOfARun(): void
    {
        $pool = $this->pool(2, delay: 0.05);
        $run = Async::run(static fn() => iterator_to_array($pool->run(array_fill(0, 12, Command::of('true')))));
        Eventually::holds(static fn(): bool => $pool->statistics()['waiting'] > 6, 'the run waits for the delay');
        $pool->execute(Command::of('true'));
        self::assertGreaterThan(0, $pool->statistics()['waiting']);

        self::assertCount(12, $run->await());
    }

    /** @return iterable<string, array{\Closure(CommandPool): mixed}> */
    public static function continuations(): iterable
    {
        yield 'resume()' => [static fn(CommandPool $pool) => $pool->resume()];
        yield 'close()' => [static fn(CommandPool $pool) => $pool->close()];
    }

    /** @param \Closure(CommandPool): mixed $continue */
    #[DataProvider('continuations')]
    public function testTheDelayHoldsAfterAPause(\Closure $continue): void
    {
        $pool = $this->pool(4);
        $first = $pool->execute(Command::of('true'));
        $pool->pause();
        $runs = [];
        for ($i = 0; $i < 3; ++$i) {
            $runs[] = Async::run(static fn(): CommandResult => $pool->execute(Command::of('true')));
        }
        Eventually::holds(static fn(): bool => $pool->statistics()['waiting'] === 3, 'all are submitted');
        self::assertCount(1, self::timers(), 'a timer keeps the event loop running');
        $mayStart = static fn(): bool => microtime(true) > $first->startedAt + 3 * self::DELAY;
        Eventually::holds($mayStart, 'without the pause, all could have started');
        $continue($pool);

        self::assertApart([$first, ...array_map(static fn(Future $run): CommandResult => $run->await(), $runs)], 4);
    }

    public function testACommandThatIsHeldIsTakenBackByAKillAndByADrain(): void
    {
        $verbs = [
            static fn(CommandPool $pool) => $pool->cancelAll(),
            static fn(CommandPool $pool) => $pool->cancelWaiting(),
        ];
        foreach ($verbs as $takeBack) {
            $pool = $this->pool(2, delay: 60.0);
            $results = [];
            foreach ($pool->run([Command::of('true'), Command::of('true')]) as $result) {
                $results[] = $result->error;
                if (\count($results) === 1) {
                    self::assertSame(1, $pool->statistics()['waiting']);
                    self::assertSame([], $pool->runningKeys());
                    $takeBack($pool);
                }
            }

            self::assertSame([null, 'cancelled before it was started'], $results);
        }
    }

    public function testAnAttemptThatIsHeldIsTakenBack(): void
    {
        $pool = new CommandPool(2, new RetryPolicy(1, delay: 0.0), new CommandPoolOptions(delay: 60.0));
        $run = Async::run(static fn(): CommandResult => $pool->execute(Command::of('false')));
        Eventually::holds(static fn(): bool => $pool->statistics()['retried_total'] === 1, 'it is held');
        $pool->cancelAll();

        self::assertStringContainsString('cancelled before its next attempt', $run->await()->describe());
    }

    public function testAnExecutionThatIsHeldCanBeCancelled(): void
    {
        $pool = $this->pool(2, delay: 60.0);
        $pool->execute(Command::of('true'));
        $cancellation = new DeferredCancellation();
        $token = $cancellation->getCancellation();
        $run = Async::run(static fn(): CommandResult => $pool->execute(Command::of('true'), $token));
        $cancellation->cancel();

        $this->expectException(CancelledException::class);
        $run->await();
    }

    public function testAfterTheLastHeldCommandIsCancelledNoTimerKeepsTheEventLoopRunning(): void
    {
        $pool = $this->pool(2, delay: 60.0);
        $pool->execute(Command::of('true'));
        $runs = [];
        for ($i = 0; $i < 2; ++$i) {
            $runs[] = Async::run(static fn(): CommandResult => $pool->execute(Command::of('true')));
        }
        Eventually::holds(static fn(): bool => $pool->statistics()['waiting'] === 2, 'both are held');
        self::assertCount(1, self::timers());
        $pool->cancelAll();

        self::assertSame([], self::timers());
        self::assertTrue($runs[0]->await()->cancelled && $runs[1]->await()->cancelled);
    }

    public function testAPoolThatIsClosedHoldsNothing(): void
    {
        $pool = $this->pool(2, delay: 60.0);
        $pool->execute(Command::of('true'));
        $run = Async::run(static fn(): CommandResult => $pool->execute(Command::of('true')));
        Eventually::holds(static fn(): bool => $pool->statistics()['waiting'] === 1, 'it is held');
        $pool->kill();

        $this->expectException(LauncherException::class);
        $run->await();
    }

    public function testADelayBelowZeroIsRefused(): void
    {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage('The delay must be 0 or more seconds, at most 1000000000, not -1');

        new CommandPoolOptions(delay: -1.0);
    }

    /** @return array<string> callback ids */
    private static function timers(): array
    {
        return array_filter(
            EventLoop::getIdentifiers(),
            static fn(string $id): bool => EventLoop::getType($id) === CallbackType::Delay,
        );
    }

    private function pool(int $concurrency, float $delay = self::DELAY): CommandPool
    {
        return new CommandPool($concurrency, options: new CommandPoolOptions(delay: $delay));
    }

    /** @param array<CommandResult> $results */
    private static function assertApart(array $results, int $count): void
    {
        $starts = array_map(static fn(CommandResult $result): float => $result->startedAt, $results);
        sort($starts);
        self::assertCount($count, $starts);
        foreach (\array_slice($starts, 1) as $i => $start) {
            self::assertGreaterThanOrEqual(self::AT_LEAST, $start - $starts[$i]);
        }
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Worker;

use Amp\Future;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Revolt\EventLoop;
use Spindle\Command\Command;
use Spindle\Command\CommandPool;
use Spindle\Command\RetryPolicy;
use Spindle\Internal\Async\Condition;
use Spindle\Internal\Async\LoopTurn;
use Spindle\Worker\WorkerContext;
use Spindle\Worker\WorkerPool;
use Spindle\Worker\WorkerPoolOptions;

use function Amp\async;
use function Amp\delay;

/** Tests that callbacks which a task leaves in the event loop do not reach the next task, except those of Spindle. */
final class LoopCallbacksTest extends TestCase
{
    private const LATER = 0.05;

    private static int $calls = 0;
    private static string $timer = '';
    private static ?WorkerPool $pool = null;
    private static ?CommandPool $commands = null;

    /** @var Future<mixed>|null of a call that the first task does not await */
    private static ?Future $left = null;

    /** @return iterable<string, array{WorkerContext, bool}> */
    public static function contexts(): iterable
    {
        yield 'a process' => [WorkerContext::Process, false];
        yield 'a process whose state is restored' => [WorkerContext::Process, true];
        if (\function_exists('pcntl_fork')) {
            yield 'a fork' => [WorkerContext::Fork, false];
        }
    }

    #[DataProvider('contexts')]
    public function testCallbacksThatATaskLeavesFailNoOtherTask(WorkerContext $context, bool $restores): void
    {
        $printed = '';
        $pool = new WorkerPool(1, options: new WorkerPoolOptions(
            $context,
            restoreState: $restores,
            onOutput: static function (string $bytes) use (&$printed): void {
                $printed .= $bytes;
            },
        ));
        foreach ([
            'delay' => self::leaveDelay(...),
            'delay that is due' => self::leaveDueDelay(...),
            'repeat' => self::leaveRepeat(...),
            'defer' => self::leaveDeferred(...),
            'queue' => self::leaveQueued(...),
            'async' => self::leaveAsync(...),
            'async that waits' => self::leaveWaitingAsync(...),
            'async that starts another at its end' => self::leaveAsyncWithFinally(...),
            'async that fails when it is ended' => self::leaveAsyncThatFailsAtItsEnd(...),
            'generator' => self::leaveFromGenerator(...),
        ] as $what => $leave) {
            $left = $pool->submit($leave)->await();
            self::assertSame('left', $left instanceof \Generator ? $left->current() : $left, $what);
            unset($left);
            self::assertSame('ran', $pool->submit(self::runLoop(...))->await(), $what);
        }
        $pool->close();

        self::assertStringContainsString('A callback that a task left in the event loop threw', $printed);
        self::assertStringContainsString('RuntimeException: queued', $printed);
        self::assertStringContainsString('RuntimeException: async', $printed);
        self::assertStringContainsString('RuntimeException: finally', $printed);
        self::assertStringNotContainsString('RuntimeException: delay', $printed);
    }

    #[DataProvider('contexts')]
    public function testCallbacksThatATaskLeavesFailNoOtherTaskOfItsBatch(WorkerContext $context, bool $restores): void
    {
        $pool = new WorkerPool(1, options: new WorkerPoolOptions($context, restoreState: $restores));
        $results = iterator_to_array($pool->map(range(1, 60), self::leaveOrRun(...)), false);

        self::assertSame(array_map(static fn(int $n): string => $n % 2 === 1 ? 'left' : 'ran', range(1, 60)), $results);
    }

    #[DataProvider('contexts')]
    public function testCallbacksOfInitializeContinue(WorkerContext $context, bool $restores): void
    {
        $options = new WorkerPoolOptions($context, initialize: self::startCounting(...), restoreState: $restores);
        $pool = new WorkerPool(1, options: $options);
        $first = $pool->submit(self::countLater(...))->await();
        $pool->submit(self::leaveDelay(...))->await();

        self::assertGreaterThan(0, $first);
        self::assertGreaterThan($first, $pool->submit(self::countLater(...))->await());
    }

    public function testATimerOfAnotherDriverIsCancelledToo(): void
    {
        $pool = new WorkerPool(1);
        $pool->submit(static fn(): array => EventLoop::getIdentifiers())->await();
        $pool->submit(static function (): void {
            EventLoop::setDriver((new EventLoop\DriverFactory())->create());
            EventLoop::delay(60.0, static function (): void {});
        })->await();

        self::assertSame([], $pool->submit(static fn(): array => EventLoop::getIdentifiers())->await());
    }

    public function testAnUnreferencedTimerGoesOn(): void
    {
        $pool = new WorkerPool(1);
        $pool->submit(self::startCountingUnreferenced(...))->await();

        self::assertGreaterThan(0, $pool->submit(self::countLater(...))->await());
    }

    public function testAPoolWithOpenTasksStaysUsable(): void
    {
        $pool = new WorkerPool(1);
        $pool->submit(self::openPool(...))->await();

        self::assertSame([1, 2], $pool->submit(self::usePool(...))->await());
        self::assertSame([1, 2], $pool->submit(self::usePool(...))->await());
    }

    public function testAWaitOfSpindleGoesOn(): void
    {
        $pool = new WorkerPool(1);
        $pool->submit(self::leaveWait(...))->await();

        self::assertSame('waited', $pool->submit(self::awaitLeft(...))->await());
    }

    public function testAPoolOfCommandsStaysUsable(): void
    {
        $pool = new WorkerPool(1);
        $pool->submit(self::leaveRetry(...))->await();

        self::assertSame(2, $pool->submit(self::awaitLeft(...))->await());
        self::assertSame(1, $pool->submit(self::runCommand(...))->await());
    }

    public static function leaveDelay(): string
    {
        EventLoop::delay(0.001, static fn() => throw new \RuntimeException('delay'));

        return 'left';
    }

    public static function leaveDueDelay(): string
    {
        EventLoop::delay(0.001, static fn() => throw new \RuntimeException('delay'));
        usleep(5000);

        return 'left';
    }

    public static function leaveRepeat(): string
    {
        EventLoop::repeat(0.001, static fn() => throw new \RuntimeException('delay'));

        return 'left';
    }

    public static function leaveDeferred(): string
    {
        EventLoop::defer(static fn() => throw new \RuntimeException('delay'));

        return 'left';
    }

    public static function leaveQueued(): string
    {
        for ($i = 0; $i < 300; ++$i) {
            EventLoop::queue(static fn() => throw new \RuntimeException('queued'));
        }

        return 'left';
    }

    public static function leaveAsync(): string
    {
        async(static fn() => throw new \RuntimeException('async'));

        return 'left';
    }

    public static function leaveWaitingAsync(): string
    {
        async(static function (): void {
            delay(0.001);

            throw new \RuntimeException('delay');
        });

        return 'left';
    }

    public static function leaveAsyncWithFinally(): string
    {
        async(static function (): void {
            try {
                delay(0.001);
            } finally {
                async(static fn() => throw new \RuntimeException('finally'));
            }
        });

        return 'left';
    }

    public static function leaveAsyncThatFailsAtItsEnd(): string
    {
        async(static function (): void {
            try {
                delay(0.001);
            } finally {
                throw new \RuntimeException('ended');
            }
        });

        return 'left';
    }

    public static function leaveFromGenerator(): \Generator
    {
        self::leaveDelay();
        yield 'left';
        self::leaveAsync();
    }

    public static function leaveOrRun(int $number): string
    {
        return $number % 2 === 1 ? self::leaveDelay() : self::runLoop();
    }

    public static function runLoop(): string
    {
        delay(self::LATER / 5);

        return 'ran';
    }

    public static function startCounting(): void
    {
        self::$timer = EventLoop::repeat(0.001, static function (): void {
            ++self::$calls;
        });
    }

    public static function startCountingUnreferenced(): void
    {
        self::startCounting();
        EventLoop::unreference(self::$timer);
    }

    public static function countLater(): int
    {
        delay(self::LATER);

        return self::$calls;
    }

    public static function openPool(): void
    {
        self::$pool = new WorkerPool(1);
        self::$pool->submit(self::one(...))->ignore();
        self::$pool->submit(self::pause(...))->ignore();
    }

    /** @return list<int> */
    public static function usePool(): array
    {
        \assert(self::$pool !== null);

        $futures = [self::$pool->submit(self::one(...)), self::$pool->submit(self::two(...))];

        return array_map(static fn(Future $future): int => $future->await(), $futures);
    }

    public static function leaveWait(): void
    {
        self::$left = async(static function (): string {
            (new Condition())->waitFor(0.001);

            return 'waited';
        });
    }

    /** Returns while a failed command waits for its retry. */
    public static function leaveRetry(): void
    {
        $commands = self::$commands = new CommandPool(1, new RetryPolicy(1, delay: 0.2, jitter: 0.0));
        self::$left = async(static fn(): int => $commands->execute(Command::of('false'))->attempts);
        while ($commands->statistics()['retried_total'] === 0) {
            LoopTurn::await();
        }
    }

    public static function awaitLeft(): mixed
    {
        return self::$left?->await();
    }

    public static function runCommand(): int
    {
        $commands = self::$commands;
        \assert($commands !== null);
        $attempts = $commands->execute(Command::of('true'))->attempts;
        $commands->close();

        return $attempts;
    }

    public static function pause(): void
    {
        usleep(200_000);
    }

    public static function one(): int
    {
        return 1;
    }

    public static function two(): int
    {
        return 2;
    }
}

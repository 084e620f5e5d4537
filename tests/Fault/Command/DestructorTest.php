<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Command;

use Amp\Cancellation;
use Amp\CancelledException;
use Amp\DeferredFuture;
use Amp\TimeoutCancellation;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\RequiresPhp;
use PHPUnit\Framework\Attributes\TestWith;
use Revolt\EventLoop;
use Spindle\Command\Command;
use Spindle\Command\CommandPool;
use Spindle\Command\CommandPoolOptions;
use Spindle\Command\CommandResult;
use Spindle\Internal\CannotWaitException;
use Spindle\Internal\CommandTransport;
use Spindle\LauncherException;
use Spindle\Tests\Async;
use Spindle\Tests\Eventually;
use Spindle\Tests\Host;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\TidyTestCase;
use Spindle\Worker\InlineExecutor;
use Spindle\Worker\WorkerPool;

/** Waiting where PHP can't switch fibers: in a signal handler, and before PHP 8.4 in a destructor. */
final class DestructorTest extends TidyTestCase
{
    use OwnDirectory;

    /** Object that exists until the end of the process. */
    public static ?object $last = null;

    /** @return array<string, array{\Closure(CommandPool, WorkerPool): mixed}> */
    public static function waits(): array
    {
        return [
            'execute' => [
                static fn(CommandPool $commands): string => $commands->execute(Command::of('echo', '5'))->stdout(),
            ],
            'run' => [
                static fn(CommandPool $commands): int => iterator_count($commands->run([Command::of('echo', '5')])),
            ],
            'maxConcurrency' => [static fn(CommandPool $commands): int => $commands->maxConcurrency()],
            'map' => [
                static fn(CommandPool $commands, WorkerPool $workers): array
                    => iterator_to_array($workers->map([-5], abs(...))),
            ],
            'close' => [static function (CommandPool $commands, WorkerPool $workers): void {
                $workers->submit(getmypid(...));
                $workers->close();
            }],
        ];
    }

    /** @param \Closure(CommandPool, WorkerPool): mixed $wait */
    #[DataProvider('waits')]
    public function testItFailsWithTheReasonAndHarmsNothingElse(\Closure $wait): void
    {
        $commands = new CommandPool(1);
        $workers = new WorkerPool(1);
        $thrown = null;
        $object = self::destroyed(static function () use ($wait, $commands, $workers, &$thrown): void {
            try {
                $wait($commands, $workers);
            } catch (CannotWaitException $thrown) {
            }
        });
        unset($object);

        self::assertSame(\PHP_VERSION_ID < 80400, $thrown instanceof CannotWaitException, (string) $thrown);
        self::assertSame("6\n", $commands->execute(Command::of('echo', '6'))->stdout());
        $workers->close();
    }

    /** @param \Closure(CommandPool, WorkerPool): mixed $wait */
    #[DataProvider('waits')]
    public function testInASignalHandlerItFailsInTheSameWay(\Closure $wait): void
    {
        if (!\function_exists('pcntl_signal')) {
            self::markTestSkipped('Needs pcntl');
        }
        $commands = new CommandPool(1);
        $workers = new WorkerPool(1);
        $thrown = null;
        pcntl_signal(\SIGUSR2, static function () use ($wait, $commands, $workers, &$thrown): void {
            try {
                $wait($commands, $workers);
            } catch (CannotWaitException $thrown) {
            }
        });
        posix_kill((int) getmypid(), \SIGUSR2);
        pcntl_signal_dispatch();
        pcntl_signal(\SIGUSR2, \SIG_DFL);

        self::assertInstanceOf(CannotWaitException::class, $thrown);
        self::assertSame("6\n", $commands->execute(Command::of('echo', '6'))->stdout());
        $workers->close();
    }

    public function testNothingRunsThatIsRefused(): void
    {
        if (!\function_exists('pcntl_signal')) {
            self::markTestSkipped('Needs pcntl');
        }
        $commands = new CommandPool(1);
        $workers = new WorkerPool(1);
        $command = Command::of('touch', $this->path('executed'));
        foreach ([
            static fn(): bool => $commands->execute($command)->succeeded(),
            static fn(): int => iterator_count($commands->run([$command])),
            fn(): array => iterator_to_array($workers->map([$this->path('executed')], touch(...))),
            fn(): array => iterator_to_array((new InlineExecutor())->map([$this->path('executed')], touch(...))),
        ] as $wait) {
            $thrown = Async::inSignalHandler($wait);
            self::assertInstanceOf(CannotWaitException::class, $thrown);
            self::assertStringEndsWith('was refused before it had an effect', $thrown->getMessage());
        }
        $commands->close();
        $workers->close();

        self::assertFileDoesNotExist($this->path('executed'));
    }

    public function testACommandEndsThatASignalHandlerHasTakenTheCallerFrom(): void
    {
        if (!\function_exists('pcntl_signal')) {
            self::markTestSkipped('Needs pcntl');
        }
        $pool = new CommandPool(1);
        $async = pcntl_async_signals(true);
        pcntl_signal(\SIGUSR2, static fn() => throw new \DomainException('of the handler'));
        $thrown = null;
        try {
            $pool->execute(Command::shell('kill -USR2 ' . getmypid() . '; exec sleep 60'));
        } catch (\Throwable $thrown) {
        }
        pcntl_signal(\SIGUSR2, \SIG_DFL);
        pcntl_async_signals($async);

        self::assertInstanceOf(\DomainException::class, $thrown);
        Eventually::holds(static fn(): bool => $pool->statistics()['in_use'] === 0, 'The command has ended', 30);
        self::assertTrue($pool->execute(Command::of('true'))->succeeded());
    }

    #[RequiresPhp('>= 8.4')]
    public function testAtTheEndOfAScriptAPoolIsClosedIfItsLauncherIsDestroyedFirst(): void
    {
        Host::call(self::class . '::executeAtTheEnd', [$this->path('thrown')]);

        self::assertStringStartsWith(
            LauncherException::class . ': The pool was closed',
            (string) file_get_contents($this->path('thrown')),
        );
    }

    /** Makes PHP call the destructors in this order: of the launcher, of an object that waits, of the pool. */
    public static function executeAtTheEnd(string $file): void
    {
        $handles = array_map(static fn(): \stdClass => new \stdClass(), range(1, 500));
        /** @var \ArrayObject<int, CommandPool> $pools */
        $pools = new \ArrayObject();
        self::$last = self::destroyed(static function () use ($pools, $file): void {
            try {
                $pools[0]?->execute(Command::of('true'));
            } catch (\Throwable $thrown) {
                file_put_contents($file, $thrown::class . ": {$thrown->getMessage()}");
            }
        });
        $pools[] = $pool = new CommandPool(1);
        unset($handles); // the launcher gets the handle of one of these objects
        $pool->execute(Command::of('true'));
    }

    #[TestWith([true])]
    #[TestWith([false])]
    public function testAPoolWithATransportIsKilledOrNotClosedAndTheEventLoopStaysUsable(bool $isKilled): void
    {
        $pool = new CommandPool(1, options: new CommandPoolOptions(transport: self::endlessTransport()));
        $execution = Async::run(static fn(): CommandResult => $pool->execute(Command::of('true')));
        Eventually::holds(static fn(): bool => $pool->statistics()['in_use'] === 1, 'the transport has the command');
        $thrown = null;
        $timer = EventLoop::delay(10.0, static fn() => null); // keeps the loop running
        $object = self::destroyed(static function () use ($pool, $isKilled, &$thrown): void {
            try {
                $isKilled ? $pool->kill() : $pool->close(new TimeoutCancellation(0.01));
            } catch (CannotWaitException|CancelledException $thrown) {
            }
        });
        unset($object);
        EventLoop::cancel($timer);
        self::assertSame(!$isKilled && \PHP_VERSION_ID < 80400, $thrown instanceof CannotWaitException);
        $pool->kill();

        $this->expectException(LauncherException::class);
        $execution->await(new TimeoutCancellation(10.0));
    }

    private static function endlessTransport(): CommandTransport
    {
        return new class implements CommandTransport {
            public function execute(string $encoded, Cancellation $withdrawal, Cancellation $cancellation): string
            {
                (new DeferredFuture())->getFuture()->await($cancellation);

                return '';
            }
        };
    }

    /** @param \Closure(): void $then */
    private static function destroyed(\Closure $then): object
    {
        return new class ($then) {
            /** @param \Closure(): void $then */
            public function __construct(private readonly \Closure $then) {}

            public function __destruct()
            {
                ($this->then)();
            }
        };
    }
}

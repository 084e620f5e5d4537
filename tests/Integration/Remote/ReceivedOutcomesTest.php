<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Remote;

use Amp\TimeoutCancellation;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\Attributes\TestWith;
use Spindle\Command\Command;
use Spindle\Command\CommandPool;
use Spindle\Command\CommandPoolOptions;
use Spindle\Remote\BrokerRefusedException;
use Spindle\Remote\Internal\JobOutbox;
use Spindle\Remote\Internal\ReceivedOutcomes;
use Spindle\Remote\Internal\Redis\Address;
use Spindle\Remote\Internal\Redis\RedisConnection;
use Spindle\Remote\Job;
use Spindle\Remote\JobRetryPolicy;
use Spindle\Remote\RedisBroker;
use Spindle\Remote\RemoteCommands;
use Spindle\Remote\RemoteExecutor;
use Spindle\Remote\SigningKeys;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\Eventually;
use Spindle\Tests\Host;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Remote\AgentProgram;
use Spindle\Tests\Remote\Redis;
use Spindle\Tests\Remote\SharesAnAgent;
use Spindle\Tests\TidyTestCase;
use Spindle\Worker\TaskFailedException;

/** Outcomes that the caller's process has received do not stay in the engine. */
final class ReceivedOutcomesTest extends TidyTestCase
{
    use CatchesThrown;
    use OwnDirectory;
    use SharesAnAgent;

    protected function setUp(): void
    {
        Eventually::holds(static fn(): bool => self::outcomes() === [], 'the outcomes of the first tasks are dropped');
    }

    public function testReceivedOutcomesAreDroppedSoon(): void
    {
        self::assertSame(3, $this->remote()->submit(static fn(): int => 3)->await());
        Eventually::holds(static fn(): bool => self::outcomes() === [], 'the outcome is dropped');
    }

    public function testCloseDropsReceivedOutcomes(): void
    {
        $executor = $this->remote();
        self::assertSame([1, 2, 3], iterator_to_array($executor->map([-1, -2, -3], abs(...)), false));
        $executor->close();

        self::assertSame([], self::outcomes());
    }

    public function testCloseDropsOutcomesOfCommands(): void
    {
        $commands = new RemoteCommands(new RedisBroker(Redis::shared()->url()), self::$sharedQueue, self::keys());
        $pool = new CommandPool(2, options: new CommandPoolOptions(transport: $commands));
        foreach ($pool->run([Command::of('echo', 'hi')]) as $result) {
            self::assertSame('hi', trim($result->stdout()));
        }
        $commands->close();

        self::assertSame([], self::outcomes());
    }

    #[TestWith([false])]
    #[TestWith([true])]
    public function testAnExecutorThatEndsInADestructorLeavesTheEventLoopUsable(bool $isKilled): void
    {
        $executor = $this->remote();
        self::assertSame(3, $executor->submit(static fn(): int => 3)->await());
        if ($isKilled) {
            $executor->submit(static fn() => usleep(100_000))->ignore();
        }
        $object = new class ($isKilled ? $executor->kill(...) : $executor->close(...)) {
            public function __construct(private readonly \Closure $end) {}

            public function __destruct()
            {
                ($this->end)();
            }
        };
        unset($object);

        Eventually::holds(static fn(): bool => self::outcomes() === [], 'the outcomes are dropped');
    }

    public function testOutcomesOfALeftMapAreDropped(): void
    {
        $executor = $this->remote();
        for ($i = 0; $i < 5; ++$i) {
            foreach ($executor->map(range(1, 20), abs(...)) as $result) {
                self::assertSame(1, $result);
                break;
            }
        }
        $executor->close();

        Eventually::holds(static fn(): bool => self::outcomes() === [], 'the outcomes are dropped');
    }

    public function testOutcomesOfAFailedMapAreDropped(): void
    {
        $task = static fn(int $i): int => $i % 20 === 3 ? throw new \DomainException('the third') : $i;
        $executor = $this->remote(new JobRetryPolicy(1));
        for ($i = 0; $i < 5; ++$i) {
            self::thrown(TaskFailedException::class, static fn(): array => iterator_to_array(
                $executor->map(range(1, 20), $task),
            ));
        }
        $executor->close();

        Eventually::holds(static fn(): bool => self::outcomes() === [], 'the outcomes are dropped');
    }

    public function testTheItemsOfAGeneratorAreDropped(): void
    {
        $executor = $this->remote();
        for ($i = 0; $i < 5; ++$i) {
            $items = $executor->submit(static fn(): \Generator => yield from range(1, 40))->await();
            self::assertCount(40, iterator_to_array($items, false));
        }
        unset($items);
        $executor->close();

        Eventually::holds(static fn(): bool => self::outcomes() === [], 'the items are dropped');
    }

    #[TestWith([3])]
    #[TestWith([1000])]
    public function testTheItemsOfALeftGeneratorAreDropped(int $count): void
    {
        $executor = $this->remote();
        for ($i = 0; $i < 5; ++$i) {
            $items = $executor->submit(static fn(): \Generator => yield from range(1, $count))->await();
            self::assertSame(1, $items->current());
            unset($items);
        }
        $executor->close();

        Eventually::holds(static fn(): bool => self::outcomes() === [], 'the items are dropped');
    }

    public function testTheItemsOfGeneratorsInALeftMapAreDropped(): void
    {
        $executor = $this->remote();
        $task = static fn(int $i): \Generator => yield from [$i, $i];
        for ($i = 0; $i < 5; ++$i) {
            foreach ($executor->map(range(1, 20), $task) as $items) {
                self::assertSame(1, $items->current());
                break;
            }
        }
        unset($items);
        $executor->close();

        Eventually::holds(static fn(): bool => self::outcomes() === [], 'the items are dropped');
    }

    #[TestWith([false])]
    #[TestWith([true])]
    public function testTheItemsOfAGeneratorAreDroppedAfterTheExecutorHasEnded(bool $isKilled): void
    {
        $executor = $this->remote();
        $generators = $executor->map([1, 2], static fn(): \Generator => yield from range(1, 5));
        $read = $generators->current();
        $generators->next();
        $left = $generators->current();
        Eventually::holds(static fn(): bool => self::runningCount() === 0, 'the tasks have ended');
        Eventually::holds(static fn(): bool => self::outcomes('result') === [], 'the outcomes were received');
        self::assertCount(2, self::outcomes('items'));
        $isKilled ? $executor->kill() : $executor->close();
        self::assertSame([1, 2, 3, 4, 5], iterator_to_array($read, false));
        self::assertSame(1, $left->current());
        unset($left, $generators);

        Eventually::holds(static fn(): bool => self::outcomes() === [], 'the items are dropped');
    }

    #[RequiresPhpExtension('pcntl')]
    public function testAForkThatReadsAMapOfItsParentEndsTheTaskOfADroppedGenerator(): void
    {
        $process = Host::start(self::class . '::leaveItemsInAFork', [Redis::shared()->url(), self::$sharedQueue]);
        Eventually::holds(static fn(): bool => !$process->isRunning(), 'the process has ended', 30.0);

        self::assertSame(7, $process->getExitCode(), $process->getOutput() . $process->getErrorOutput());
    }

    public static function leaveItemsInAFork(string $address, string $queue): never
    {
        $executor = new RemoteExecutor(new RedisBroker($address), $queue, new SigningKeys([AgentProgram::KEY]));
        $map = $executor->map([7], static function (int $i): \Generator {
            while (true) {
                yield $i;
                usleep(1000);
            }
        });
        $pid = pcntl_fork();
        if ($pid !== 0) {
            pcntl_waitpid($pid, $status);
            exit(\is_int($status) ? (int) pcntl_wexitstatus($status) : 1);
        }
        $seven = $map->current()->current();
        unset($map);
        $statistics = (new RedisBroker($address))->statistics(...);
        Eventually::holds(static fn(): bool => $statistics($queue)['running'] === 0, 'the task has ended', 15.0);

        exit($seven);
    }

    public function testManyOutcomesAreDroppedWhenTheProcessEnds(): void
    {
        for ($i = 0; $i < 2500; ++$i) {
            Redis::shared()->command('SET', 'spindle:{' . self::$sharedQueue . "}:result:job-{$i}", '', 'EX', '3600');
        }
        self::assertCount(2500, self::outcomes());

        self::runToItsEnd('addMany');
    }

    public function testOutcomesOfManyQueuesAreDroppedWhenTheProcessEnds(): void
    {
        for ($i = 0; $i < 4500; ++$i) {
            Redis::shared()->command('SET', 'spindle:{' . self::$sharedQueue . "}:result:job-{$i}", '', 'EX', '3600');
        }

        self::runToItsEnd('addToManyQueues');
    }

    #[TestWith(['submit'])]
    #[TestWith(['submitInAFunction'])]
    #[TestWith(['map'])]
    #[TestWith(['closeInADestructor'])]
    #[TestWith(['readItems'])]
    #[TestWith(['readItemsInMap'])]
    #[TestWith(['leaveItems'])]
    #[TestWith(['kill'])]
    #[TestWith(['keepItems'])]
    #[TestWith(['lackScripts'])]
    #[TestWith(['exitInAShutdownFunction'])]
    #[TestWith(['throwInAShutdownFunction', 255])]
    #[TestWith(['submitInLateShutdownFunctions'])]
    #[TestWith(['exceedTheMemoryLimit', 255])]
    public function testReceivedOutcomesAreDroppedWhenTheProcessEnds(string $program, int $exitCode = 7): void
    {
        self::runToItsEnd($program, $exitCode);
    }

    public function testARequestAfterTheLastOnesOfTheProcessIsRefused(): void
    {
        $queue = uniqid('late-');
        $process = Host::start(self::class . '::submitInALateDestructor', [Redis::shared()->url(), $queue]);
        Eventually::holds(static fn(): bool => !$process->isRunning(), 'the process has ended', 20.0);

        self::assertSame(7, $process->getExitCode(), $process->getErrorOutput());
        self::assertStringContainsString('the process is ending', $process->getOutput());
        self::assertSame([], Redis::shared()->command('KEYS', "spindle:{{$queue}}:*"));
    }

    private static function runToItsEnd(string $program, int $exitCode = 7): void
    {
        $process = Host::start(self::class . "::{$program}", [Redis::shared()->url(), self::$sharedQueue]);
        Eventually::holds(static fn(): bool => !$process->isRunning(), 'the process has ended', 20.0);

        self::assertSame($exitCode, $process->getExitCode(), $process->getOutput() . $process->getErrorOutput());
        Eventually::holds(static fn(): bool => self::outcomes() === [], 'the outcome is dropped');
    }

    public static function submit(string $address, string $queue): never
    {
        $executor = new RemoteExecutor(new RedisBroker($address), $queue, new SigningKeys([AgentProgram::KEY]));

        exit($executor->submit(static fn(): int => 7)->await(new TimeoutCancellation(10.0)));
    }

    /** PHP destroys the executor before the process ends. */
    public static function submitInAFunction(string $address, string $queue): never
    {
        $seven = static function () use ($address, $queue): int {
            $executor = new RemoteExecutor(new RedisBroker($address), $queue, new SigningKeys([AgentProgram::KEY]));

            return $executor->submit(static fn(): int => 7)->await(new TimeoutCancellation(10.0));
        };

        exit($seven());
    }

    /** The request for the 500 outcomes is not sent yet when the process ends. */
    public static function map(string $address, string $queue): never
    {
        $executor = new RemoteExecutor(new RedisBroker($address), $queue, new SigningKeys([AgentProgram::KEY]));

        exit(min(7, iterator_count($executor->map(range(1, 500), abs(...)))));
    }

    public static function closeInADestructor(string $address, string $queue): never
    {
        $executor = new RemoteExecutor(new RedisBroker($address), $queue, new SigningKeys([AgentProgram::KEY]));
        $object = new class ($executor) {
            public function __construct(public readonly RemoteExecutor $executor) {}

            public function __destruct()
            {
                $this->executor->close();
            }
        };
        $seven = $executor->submit(static fn(): int => 7)->await(new TimeoutCancellation(10.0));
        unset($object);

        exit($seven);
    }

    public static function readItems(string $address, string $queue): never
    {
        $executor = new RemoteExecutor(new RedisBroker($address), $queue, new SigningKeys([AgentProgram::KEY]));
        $items = $executor->submit(static fn(): \Generator => yield from range(1, 7))->await();

        exit(iterator_count($items));
    }

    public static function readItemsInMap(string $address, string $queue): never
    {
        $executor = new RemoteExecutor(new RedisBroker($address), $queue, new SigningKeys([AgentProgram::KEY]));
        $count = 0;
        foreach ($executor->map([3, 4], static fn(int $n): \Generator => yield from range(1, $n)) as $items) {
            $count += iterator_count($items);
        }

        exit($count);
    }

    public static function leaveItems(string $address, string $queue): never
    {
        $executor = new RemoteExecutor(new RedisBroker($address), $queue, new SigningKeys([AgentProgram::KEY]));
        $items = $executor->submit(static fn(): \Generator => yield from range(7, 12))->await();
        $first = $items->current();
        unset($items);

        exit($first);
    }

    /** The generator still exists when the process ends. */
    public static function keepItems(string $address, string $queue): never
    {
        static $items;
        $executor = new RemoteExecutor(new RedisBroker($address), $queue, new SigningKeys([AgentProgram::KEY]));
        $items = $executor->submit(static fn(): \Generator => yield from range(7, 12))->await();

        exit($items->current());
    }

    /** The engine lacks the script when the process ends. */
    public static function lackScripts(string $address, string $queue): never
    {
        $executor = new RemoteExecutor(new RedisBroker($address), $queue, new SigningKeys([AgentProgram::KEY]));
        $seven = $executor->submit(static fn(): int => 7)->await(new TimeoutCancellation(10.0));
        RedisConnection::open(Address::parse($address), null, 5.0)->call('SCRIPT', ['FLUSH']);

        exit($seven);
    }

    public static function exitInAShutdownFunction(string $address, string $queue): never
    {
        register_shutdown_function(static fn() => exit(7));

        self::submit($address, $queue);
    }

    public static function throwInAShutdownFunction(string $address, string $queue): never
    {
        register_shutdown_function(static fn() => throw new \DomainException('in the shutdown function'));

        self::submit($address, $queue);
    }

    public static function submitInLateShutdownFunctions(string $address, string $queue): void
    {
        $executor = new RemoteExecutor(new RedisBroker($address), $queue, new SigningKeys([AgentProgram::KEY]));
        $submit = static fn(): int => $executor->submit(static fn(): int => 7)->await(new TimeoutCancellation(10.0));
        $submit();
        register_shutdown_function(static function () use ($submit): void {
            $submit();
            register_shutdown_function(static function () use ($submit): void {
                $submit();
                register_shutdown_function(static fn() => exit($submit()));
            });
        });
    }

    /** After such an error, PHP calls no destructors of the objects that exist. */
    public static function exceedTheMemoryLimit(string $address, string $queue): void
    {
        $executor = new RemoteExecutor(new RedisBroker($address), $queue, new SigningKeys([AgentProgram::KEY]));
        $executor->submit(static fn(): int => 7)->await(new TimeoutCancellation(10.0));
        ini_set('memory_limit', '32M');
        echo str_repeat('x', 64 << 20);
    }

    public static function submitInALateDestructor(string $address, string $queue): never
    {
        static $last, $second, $first;
        $broker = new RedisBroker($address);
        $broker->durability(); // opens the connection
        $submit = static function () use ($broker, $queue): void {
            try {
                $broker->submit($queue, [new Job('job-1', 'frame')], 10, 'client', false);
            } catch (BrokerRefusedException $refused) {
                echo $refused->getMessage();
            }
        };
        // The last requests are sent by an object that a destructor creates. The destructor of an object that such an
        // object's destructor creates is called later.
        $first = self::callInDestructor(static function () use (&$last, &$second, $submit): void {
            $second = self::callInDestructor(static function () use (&$last, $submit): void {
                $last = self::callInDestructor($submit);
            });
        });

        exit(7);
    }

    private static function callInDestructor(\Closure $callback): object
    {
        return new class ($callback) {
            public function __construct(private readonly \Closure $callback) {}

            public function __destruct()
            {
                ($this->callback)();
            }
        };
    }

    public static function addToManyQueues(string $address, string $queue): never
    {
        // PHP reuses the handles of these objects from the last one, and calls destructors in the order of handles.
        $objects = array_map(static fn(): object => new \stdClass(), range(1, 1000));
        unset($objects);
        $broker = new RedisBroker($address);
        $broker->durability(); // opens the connection
        for ($i = 0; $i < 4500; ++$i) {
            $outcomes[$i % 10] ??= new ReceivedOutcomes($broker, $queue, new JobOutbox($broker, $queue, 'client'));
            $outcomes[$i % 10]->add("job-{$i}", 0);
        }

        exit(7);
    }

    public static function addMany(string $address, string $queue): never
    {
        $broker = new RedisBroker($address);
        $broker->durability(); // opens the connection
        $outcomes = new ReceivedOutcomes($broker, $queue, new JobOutbox($broker, $queue, 'client'));
        for ($i = 0; $i < 2500; ++$i) {
            $outcomes->add("job-{$i}", 0);
        }

        exit(7);
    }

    public static function kill(string $address, string $queue): never
    {
        $executor = new RemoteExecutor(new RedisBroker($address), $queue, new SigningKeys([AgentProgram::KEY]));
        $seven = $executor->submit(static fn(): int => 7)->await(new TimeoutCancellation(10.0));
        $executor->kill();

        exit($seven);
    }

    private static function runningCount(): int
    {
        return (new RedisBroker(Redis::shared()->url()))->statistics(self::$sharedQueue)['running'];
    }

    /** @return list<mixed> keys of outcomes and items in the shared queue that stay for more than a minute */
    private static function outcomes(string ...$kinds): array
    {
        $keys = [];
        foreach ($kinds === [] ? ['result', 'items'] : $kinds as $kind) {
            $found = Redis::shared()->command('KEYS', 'spindle:{' . self::$sharedQueue . "}:{$kind}:*");
            self::assertIsArray($found);
            array_push($keys, ...array_values($found));
        }

        return array_values(array_filter(
            $keys,
            static fn(mixed $key): bool => \is_string($key) && Redis::shared()->command('TTL', $key) > 60,
        ));
    }
}

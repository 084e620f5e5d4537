<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Remote;

use Amp\CompositeCancellation;
use Amp\DeferredCancellation;
use Amp\TimeoutCancellation;
use PHPUnit\Framework\Attributes\TestWith;
use Spindle\Command\Command;
use Spindle\Command\CommandPool;
use Spindle\Command\CommandPoolOptions;
use Spindle\Remote\RedisBroker;
use Spindle\Remote\RemoteCommands;
use Spindle\Remote\RemoteExecutor;
use Spindle\Remote\SigningKeys;
use Spindle\Tests\Eventually;
use Spindle\Tests\Host;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Remote\AgentProgram;
use Spindle\Tests\Remote\Redis;
use Spindle\Tests\Remote\SharesAnAgent;
use Spindle\Tests\TidyTestCase;

use function Amp\async;

/** The cancellations of a process that ends before its event loop runs again. */
final class ProcessEndTest extends TidyTestCase
{
    use OwnDirectory;
    use SharesAnAgent;

    #[TestWith(['leaveALoop'])]
    #[TestWith(['exitInALoop'])]
    #[TestWith(['throwOutOfALoop', 255])]
    #[TestWith(['cancelALoop'])]
    #[TestWith(['cancelSubmissions'])]
    #[TestWith(['cancelSubmissionsInAFunction'])]
    #[TestWith(['leaveALoopOverCommands'])]
    #[TestWith(['cancelALoopOverCommands'])]
    #[TestWith(['cancelACommand'])]
    #[TestWith(['cancelThroughAComposite'])]
    #[TestWith(['killInADestructor'])]
    #[TestWith(['failFatallyInALoop', 255])]
    public function testTasksAreCancelledWhenTheProcessEnds(string $program, int $exitCode = 7): void
    {
        $process = Host::start(self::class . "::{$program}", [Redis::shared()->url(), self::$sharedQueue]);
        Eventually::holds(static fn(): bool => !$process->isRunning(), 'the process has ended', 20.0);

        self::assertSame($exitCode, $process->getExitCode(), $process->getOutput() . $process->getErrorOutput());
        Eventually::holds(static fn(): bool => self::isQueueEmpty(), 'the tasks are cancelled');
    }

    #[TestWith(['submitOne'])]
    #[TestWith(['submitOneThatCouldBeCancelled'])]
    #[TestWith(['attachToOneThatCouldBeCancelled'])]
    #[TestWith(['cancelTheWaitForOne'])]
    public function testATaskThatWasNotCancelledRunsAfterTheEndOfTheProcess(string $program): void
    {
        $file = $this->path('ran');
        $process = Host::start(self::class . "::{$program}", [Redis::shared()->url(), self::$sharedQueue, $file]);
        Eventually::holds(static fn(): bool => !$process->isRunning(), 'the process has ended', 20.0);

        self::assertSame(7, $process->getExitCode(), $process->getOutput() . $process->getErrorOutput());
        Eventually::holds(static fn(): bool => is_file($file), 'the task has run');
    }

    public static function leaveALoop(string $address, string $queue): never
    {
        foreach (self::executor($address, $queue)->mapUnordered(range(1, 1000), self::task()) as $seven) {
            break;
        }

        exit($seven ?? 0);
    }

    public static function exitInALoop(string $address, string $queue): void
    {
        foreach (self::executor($address, $queue)->mapUnordered(range(1, 1000), self::task()) as $seven) {
            exit($seven);
        }
    }

    public static function throwOutOfALoop(string $address, string $queue): void
    {
        foreach (self::executor($address, $queue)->mapUnordered(range(1, 1000), self::task()) as $_) {
            throw new \DomainException('leaves the loop');
        }
    }

    public static function cancelALoop(string $address, string $queue): void
    {
        $cancellation = new DeferredCancellation();
        $executor = self::executor($address, $queue);
        $results = $executor->mapUnordered(range(1, 1000), self::task(), $cancellation->getCancellation());
        foreach ($results as $seven) {
            $cancellation->cancel();

            exit($seven);
        }
    }

    public static function cancelSubmissions(string $address, string $queue): never
    {
        $executor = self::executor($address, $queue);
        $cancellation = new DeferredCancellation();
        $futures = [];
        for ($i = 1; $i <= 5; ++$i) {
            $futures[] = $executor->submit(static fn(): int => sleep(60), $cancellation->getCancellation());
        }
        $cancellation->cancel();

        exit(2 + \count($futures));
    }

    public static function cancelSubmissionsInAFunction(string $address, string $queue): never
    {
        $submit = static function () use ($address, $queue): int {
            $cancellation = new DeferredCancellation();
            self::executor($address, $queue)->submit(static fn() => sleep(60), $cancellation->getCancellation());
            $cancellation->cancel();

            return 7;
        };

        exit($submit());
    }

    public static function leaveALoopOverCommands(string $address, string $queue): never
    {
        foreach (self::commandPool($address, $queue)->run(self::commands()) as $_) {
            break;
        }

        exit(7);
    }

    public static function cancelALoopOverCommands(string $address, string $queue): void
    {
        $GLOBALS['cancellation'] = $cancellation = new DeferredCancellation();
        $GLOBALS['pool'] = self::commandPool($address, $queue);
        $GLOBALS['results'] = $GLOBALS['pool']->run(self::commands(), $cancellation->getCancellation());
        foreach ($GLOBALS['results'] as $_) {
            $cancellation->cancel();

            exit(7);
        }
    }

    public static function cancelACommand(string $address, string $queue): never
    {
        $cancellation = new DeferredCancellation();
        $pool = self::commandPool($address, $queue);
        $sleep = static fn() => $pool->execute(Command::of('sleep', '60'), $cancellation->getCancellation());
        async($sleep)->ignore();
        $pool->execute(Command::of('true')); // ends after the first command was sent
        $cancellation->cancel();

        exit(7);
    }

    public static function submitOne(string $address, string $queue, string $file): never
    {
        self::executor($address, $queue)->submit(static fn(): bool => touch($file));

        exit(7);
    }

    /** PHP destroys the object at the end of the script, which requests its cancellation. */
    public static function submitOneThatCouldBeCancelled(string $address, string $queue, string $file): void
    {
        $GLOBALS['cancellation'] = $cancellation = new DeferredCancellation();
        $task = static fn(): bool => touch($file);
        self::executor($address, $queue)->submit($task, $cancellation->getCancellation());

        exit(7);
    }

    public static function attachToOneThatCouldBeCancelled(string $address, string $queue, string $file): void
    {
        $GLOBALS['cancellation'] = $cancellation = new DeferredCancellation();
        $executor = self::executor($address, $queue);
        $id = $executor->dispatch(static fn(): bool => touch($file));
        $executor->attach($id, $cancellation->getCancellation());

        exit(7);
    }

    public static function cancelTheWaitForOne(string $address, string $queue, string $file): never
    {
        $cancellation = new DeferredCancellation();
        $executor = self::executor($address, $queue);
        $id = $executor->dispatch(static fn(): bool => touch($file));
        $executor->attach($id, $cancellation->getCancellation());
        $cancellation->cancel();

        exit(7);
    }

    public static function cancelThroughAComposite(string $address, string $queue): never
    {
        $cancellation = new DeferredCancellation();
        $either = new CompositeCancellation($cancellation->getCancellation(), new TimeoutCancellation(60));
        self::executor($address, $queue)->submit(static fn(): int => sleep(60), $either);
        $cancellation->cancel();

        exit(7);
    }

    public static function killInADestructor(string $address, string $queue): never
    {
        $executor = self::executor($address, $queue);
        for ($i = 1; $i <= 5; ++$i) {
            $executor->submit(static fn(): int => sleep(60))->ignore();
        }
        $GLOBALS['service'] = new class ($executor) {
            public function __construct(private readonly RemoteExecutor $executor) {}

            public function __destruct()
            {
                $this->executor->kill();
            }
        };

        exit(7);
    }

    public static function failFatallyInALoop(string $address, string $queue): void
    {
        foreach (self::executor($address, $queue)->mapUnordered(range(1, 1000), self::task()) as $_) {
            trigger_error('ends the process', \E_USER_ERROR);
        }
    }

    /** @return \Closure(int): int a task that ends only for the value 1 */
    private static function task(): \Closure
    {
        return static fn(int $number): int => $number === 1 ? 7 : sleep(60);
    }

    /** @return list<Command> of which only the first one ends soon */
    private static function commands(): array
    {
        $sleep = static fn(int $i): Command => Command::of('sleep', $i === 1 ? '0' : '60');

        return array_map($sleep, range(1, 20));
    }

    private static function commandPool(string $address, string $queue): CommandPool
    {
        $commands = new RemoteCommands(new RedisBroker($address), $queue, new SigningKeys([AgentProgram::KEY]));

        return new CommandPool(8, options: new CommandPoolOptions(transport: $commands));
    }

    private static function executor(string $address, string $queue): RemoteExecutor
    {
        return new RemoteExecutor(new RedisBroker($address), $queue, new SigningKeys([AgentProgram::KEY]));
    }
}

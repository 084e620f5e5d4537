<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Command;

use Amp\Cancellation;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Command\Command;
use Spindle\Command\CommandPool;
use Spindle\Command\CommandPoolOptions;
use Spindle\Command\CommandResult;
use Spindle\Command\Output;
use Spindle\Command\PortableCommand;
use Spindle\Command\RetryPolicy;
use Spindle\Internal\CommandTransport;
use Spindle\Tests\Async;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\Eventually;

/** A command as bytes, and a pool whose transport runs commands in another pool. */
final class PortableCommandTest extends TestCase
{
    use CatchesThrown;
    use EndsInTime;

    /** @return iterable<string, array{Command}> */
    public static function commands(): iterable
    {
        yield 'a program' => [Command::of('printf', '%s|', "a\xFF b", '', '*')];
        yield 'a line' => [
            Command::shell('echo "$A-$B-$C"; cat; pwd >&2; exit 7')
                ->withEnvironment(['A' => "1\n2", 'B' => null, '7' => 'x'])
                ->withInput("in\0put")
                ->withWorkingDirectory('/'),
        ];
        yield 'limits' => [Command::of('sleep', '9')->withTimeout(0.05)->withIdleTimeout(5.0)];
        yield 'silence' => [Command::of('sleep', '9')->withIdleTimeout(0.05)];
        yield 'a signal' => [Command::shell('kill -9 $$')];
        yield 'without outputs' => [
            Command::shell('echo a; echo b >&2')->withStdout(Output::Discard)->withStderr(Output::Discard),
        ];
        yield 'what is not there' => [Command::of('/no/such/program')];
    }

    #[DataProvider('commands')]
    public function testACommandThatIsCarriedHasTheResultThatItHasHere(Command $command): void
    {
        $here = (new CommandPool(1))->execute($command);
        $there = (new CommandPool(1, 0, new CommandPoolOptions(transport: new AgentPool())))->execute($command);

        foreach (['command', 'exitCode', 'signal', 'timedOut', 'cancelled', 'error', 'attempts'] as $property) {
            self::assertSame($here->{$property}, $there->{$property}, $property);
        }
        self::assertSame([$here->stdout(), $here->stderr()], [$there->stdout(), $there->stderr()]);
        self::assertEqualsWithDelta($here->startedAt, $there->startedAt, 10.0);
        self::assertEqualsWithDelta($here->duration, $there->duration, 2.0);
    }

    /** @return iterable<string, array{\Closure(Command): Command, string}> */
    public static function ofThisProcess(): iterable
    {
        yield 'an input that is a stream' => [
            static fn(Command $command): Command => $command->withInput(\STDIN),
            'its input is an open stream. Pass the input as a string',
        ];
        yield 'an input that is a generator' => [
            static fn(Command $command): Command => $command->withInput(new \ArrayIterator(['x'])),
            'its input is ArrayIterator. Pass the input as a string',
        ];
        yield 'a closure' => [
            static fn(Command $command): Command => $command->withStdout(static fn() => null),
            'its standard output goes to a closure. Capture it',
        ];
        yield 'a stream' => [
            static fn(Command $command): Command => $command->withStderr(\STDERR),
            'its standard error goes to an open stream. Capture it',
        ];
        yield 'the output of this process' => [
            static fn(Command $command): Command => $command->withStdout(Output::Inherit),
            'its standard output goes to that of this process (Output::Inherit). Capture it',
        ];
    }

    /** @param \Closure(Command): Command $with */
    #[DataProvider('ofThisProcess')]
    public function testInputsAndOutputsOfThisProcessAreRefusedByName(\Closure $with, string $message): void
    {
        $pool = new CommandPool(1, 0, new CommandPoolOptions(transport: new AgentPool()));
        $command = $with(Command::of('true', 'a b')->withEnvironment(['TOKEN' => 'secret value']));
        foreach ([
            static fn() => $pool->execute($command),
            static fn() => iterator_to_array($pool->run([$command])),
        ] as $use) {
            $refused = self::thrown(\ValueError::class, static fn() => $use());
            self::assertStringContainsString($message, $refused->getMessage());
            self::assertStringEndsWith("true 'a b'", $refused->getMessage());
            self::assertStringNotContainsString('secret value', $refused->getMessage());
        }
        self::assertTrue($pool->execute(Command::of('true'))->succeeded());
    }

    public function testOutputThatIsTooLargeIsNeverTruncated(): void
    {
        $pool = new CommandPool(1);
        $result = $pool->execute(Command::shell('echo 12345; echo 678 >&2'));

        self::assertStringContainsString('12345', PortableCommand::encodeResult($result, 10));
        $outcome = PortableCommand::encodeResult($result, 9);
        self::assertStringNotContainsString('12345', $outcome);
        self::assertStringContainsString('its output of 10 bytes exceeds the limit of 9 bytes', $outcome);
        self::assertStringStartsWith('a:8:{i:0;N;i:1;N;i:2;b:0;', $outcome, 'nor is the exit code 0');
    }

    public function testAPoolWithATransportHasAMaximumConcurrency(): void
    {
        $options = new CommandPoolOptions(transport: new AgentPool());
        $pool = new CommandPool(10_000, options: $options);
        self::assertSame(10_000, $pool->maxConcurrency());

        foreach ([static fn() => $pool->resize(10_001), static fn() => new CommandPool(10_001, 0, $options)] as $use) {
            $tooHigh = self::thrown(\ValueError::class, static fn() => $use());
            self::assertSame(
                'The concurrency of a pool with a transport must be at most 10,000, not 10001',
                $tooHigh->getMessage(),
            );
        }
        self::assertSame(10_000, $pool->statistics()['max']);
    }

    public function testARetryThatWaitsForTheTransportIsCancelledBeforeItsNextAttempt(): void
    {
        $options = new CommandPoolOptions(transport: new AgentPool());
        $pool = new CommandPool(1, new RetryPolicy(1, delay: 0.0), $options);
        $failing = Async::run(static fn(): CommandResult => $pool->execute(Command::of('false')));
        $blocking = Async::run(static fn(): CommandResult => $pool->execute(Command::of('sleep', '60')));
        Eventually::holds(static function () use ($pool): bool {
            $statistics = $pool->statistics();

            return [$statistics['retried_total'], $statistics['waiting']] === [1, 1];
        }, 'the retry waits');
        $pool->cancelAll();

        self::assertSame('cancelled before its next attempt', $failing->await()->error);
        self::assertTrue($blocking->await()->cancelled);
    }
    public function testACommandThatWaitsForItsRetryIsNotKeptAsBytesToo(): void
    {
        $failed = (new CommandPool(1))->execute(Command::of('false'));
        $transport = new class (PortableCommand::encodeResult($failed, 9)) implements CommandTransport {
            public function __construct(private readonly string $outcome) {}

            public function execute(string $encoded, Cancellation $withdrawal, Cancellation $cancellation): string
            {
                return $this->outcome;
            }
        };
        $options = new CommandPoolOptions(transport: $transport);
        $pool = new CommandPool(1, new RetryPolicy(1, delay: 60.0), $options);
        $command = Command::of('cat')->withInput(str_repeat('x', 8_000_000));
        $before = memory_get_usage();
        Async::run(static fn(): CommandResult => $pool->execute($command))->ignore();
        Eventually::holds(static fn(): bool => $pool->statistics()['retried_total'] === 1, 'the retry waits');

        self::assertLessThan(4_000_000, memory_get_usage() - $before);
        $pool->kill();
    }
}

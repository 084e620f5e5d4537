<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Remote;

use Amp\Future;
use Amp\TimeoutCancellation;
use PHPUnit\Framework\Attributes\TestWith;
use Spindle\Command\Command;
use Spindle\Command\CommandPool;
use Spindle\Command\CommandPoolOptions;
use Spindle\Command\CommandResult;
use Spindle\Remote\Job;
use Spindle\Remote\PayloadTooLargeException;
use Spindle\Remote\QueueFullException;
use Spindle\Remote\RedisBroker;
use Spindle\Remote\RemoteCommands;
use Spindle\Remote\RemoteExecutor;
use Spindle\Remote\RemoteOptions;
use Spindle\Remote\ResultTooLargeException;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\Eventually;
use Spindle\Tests\TidyTestCase;
use Spindle\Worker\TaskContext;
use Spindle\Worker\TaskFailedException;

use function Amp\async;
use function Amp\Future\await;
use function Amp\Future\awaitAll;

/** Engines that accept only small values, so that one request can't carry everything that a caller or agent sends. */
final class EngineLimitsTest extends TidyTestCase
{
    use CatchesThrown;
    use OwnEngine;

    /** @param 'proto-max-bulk-len'|'client-query-buffer-limit' $setting */
    #[TestWith(['proto-max-bulk-len'])]
    #[TestWith(['client-query-buffer-limit'])]
    public function testAResultThatTheEngineDoesNotAcceptFailsTheTask(string $setting): void
    {
        $redis = $this->engine([$setting => '1mb']);
        $executor = $this->executor();
        $this->agentAt($redis->url(), $this->queue(), 1);
        $large = static fn(): string => str_repeat('x', 2 << 20);
        $failure = self::thrown(ResultTooLargeException::class, static fn() => $executor->submit($large)->await());
        self::assertStringContainsString('proto-max-bulk-len', $failure->getMessage());
        $items = $executor->submit(static function () use ($large): \Generator {
            yield 1;
            yield $large();
        })->await();
        self::assertSame(1, $items->current());
        self::thrown(ResultTooLargeException::class, static fn() => $items->next());

        self::assertSame(5, $executor->submit(static fn(): int => 5)->await());
        self::assertSame(2, $this->statistics()['dead']);
    }

    #[TestWith([false])]
    #[TestWith([true])]
    public function testAResultIsTooLargeAfterTheLimitOfTheEngineWasLowered(bool $isItem): void
    {
        $redis = $this->engine();
        $executor = $this->executor();
        $this->agentAt($redis->url(), $this->queue(), 1);
        [$started, $go] = [$this->path('started'), $this->path('go')];
        $large = $executor->submit(static function () use ($started, $go, $isItem): string|\Generator {
            touch($started);
            while (!is_file($go)) {
                usleep(1000);
                clearstatcache();
            }
            $result = str_repeat('x', 2 << 20);

            return $isItem ? (static fn(): \Generator => yield $result)() : $result;
        });
        $this->waitForFile($started);
        $redis->command('CONFIG', 'SET', 'proto-max-bulk-len', '1mb');
        touch($go);
        self::thrown(ResultTooLargeException::class, static function () use ($large): void {
            $items = $large->await(new TimeoutCancellation(20.0));
            self::assertInstanceOf(\Generator::class, $items);
            $items->current();
        });

        self::assertSame(5, $executor->submit(static fn(): int => 5)->await(new TimeoutCancellation(20.0)));
        self::assertSame(1, $this->statistics()['dead']);
    }

    public function testOnlyTheCommandFailsWhoseOutputIsTooLargeAfterTheLimitOfTheEngineWasLowered(): void
    {
        $redis = $this->engine();
        $transport = new RemoteCommands(new RedisBroker($redis->url()), $this->queue(), self::keys());
        $this->agentAt($redis->url(), $this->queue(), 2);
        [$started, $go] = [$this->path('started'), $this->path('go')];
        $large = "touch {$started}; while [ ! -e {$go} ]; do sleep 0.05; done; head -c 2000000 /dev/zero";
        $other = "until [ -e {$go} ]; do sleep 0.05; done; echo 1";
        $pool = new CommandPool(2, options: new CommandPoolOptions(transport: $transport));
        $commands = [Command::shell($large), Command::shell($other)];
        /** @var Future<array{CommandResult, CommandResult}> $results */
        $results = async(static fn(): array => iterator_to_array($pool->run($commands)));
        $this->waitForFile($started);
        $redis->command('CONFIG', 'SET', 'proto-max-bulk-len', '1mb');
        touch($go);
        [$failed, $other] = $results->await(new TimeoutCancellation(20.0));

        self::assertStringContainsString('proto-max-bulk-len', (string) $failed->error);
        self::assertSame(1, $failed->attempts);
        self::assertSame("1\n", $other->stdout());
        $transport->close();
        self::assertSame([2, 0], [$this->statistics()['done_total'], $this->statistics()['dead']]);
    }

    public function testAnExceptionWithALongReasonReachesTheCaller(): void
    {
        $redis = $this->engine(['proto-max-bulk-len' => '1mb']);
        $executor = $this->executor();
        $this->agentAt($redis->url(), $this->queue(), 1);
        $failing = $executor->submit(static function (): void {
            $failure = new \RuntimeException(str_repeat("\x01", 58_000));
            for ($i = 0; $i < 7; ++$i) { // each byte needs six bytes in the reason of the dead letter
                $failure = new \RuntimeException(str_repeat("\x01", 58_000), previous: $failure);
            }

            throw $failure;
        });
        $failure = self::thrown(
            TaskFailedException::class,
            static fn() => $failing->await(new TimeoutCancellation(20.0)),
        );

        self::assertSame(58_000, \strlen((string) $failure->getPrevious()?->getMessage()));
        self::assertSame(5, $executor->submit(static fn(): int => 5)->await(new TimeoutCancellation(20.0)));
        self::assertSame(1, $this->statistics()['dead']);
    }

    public function testManyResultsOrJobsThatAreTooMuchForOneRequestArrive(): void
    {
        $redis = $this->engine(['proto-max-bulk-len' => '1mb', 'client-query-buffer-limit' => '1mb']);
        $executor = $this->executor();
        $this->agentAt($redis->url(), $this->queue(), 2);
        $values = [];
        for ($i = 0; $i < 40; ++$i) {
            $values[] = str_repeat(\chr(65 + $i), 100_000);
        }
        $sizes = [];
        foreach ($executor->map($values, strrev(...)) as $i => $value) {
            self::assertSame($values[$i], $value);
            $sizes[$i] = \strlen($value);
        }
        self::assertSame(array_fill(0, 40, 100_000), $sizes);
        $submitted = [];
        foreach ($values as $value) {
            $submitted[] = async(static fn(): int => $executor->submit(static fn(): int => \strlen($value))->await());
        }
        self::assertEquals($sizes, await($submitted));
    }

    public function testAJobThatTheEngineDoesNotAcceptIsRefusedAndOthersAreSent(): void
    {
        $redis = $this->engine(['proto-max-bulk-len' => '1mb']);
        $executor = new RemoteExecutor(
            new RedisBroker($redis->url()),
            $this->queue(),
            self::keys(),
            options: new RemoteOptions(maxPayloadBytes: 4 << 20),
        );
        $value = str_repeat('x', 2 << 20);
        $refused = async(static fn() => $executor->submit(static fn(): int => \strlen($value)));
        $other = async(static fn() => $executor->dispatch(static fn(): int => 1, 'other'));
        $failure = self::thrown(PayloadTooLargeException::class, $refused->await(...));
        self::assertStringContainsString('proto-max-bulk-len', $failure->getMessage());
        self::assertSame('other', $other->await());
        self::thrown(
            PayloadTooLargeException::class,
            static fn() => iterator_to_array($executor->map([$value], strrev(...))),
        );
        self::assertSame(1, $this->statistics()['waiting']);
    }

    #[TestWith([true])]
    #[TestWith([false])]
    public function testAMapSendsTheValuesBeforeOneThatTheEngineDoesNotAccept(bool $inOrder): void
    {
        $redis = $this->engine(['proto-max-bulk-len' => '1mb']);
        $options = new RemoteOptions(maxPayloadBytes: 4 << 20);
        $broker = new RedisBroker($redis->url());
        $executor = new RemoteExecutor($broker, $this->queue(), self::keys(), options: $options);
        $this->agentAt($redis->url(), $this->queue(), 1);
        $values = ['a' => 'A', 'b' => 'B', 'c' => str_repeat('x', 2 << 20)];
        $lower = strtolower(...);
        $results = $inOrder ? $executor->map($values, $lower) : $executor->mapOutcomesUnordered($values, $lower);
        $keys = [];
        $failure = self::thrown(PayloadTooLargeException::class, static function () use ($results, &$keys): void {
            foreach ($results as $key => $result) {
                $keys[] = $key;
            }
        });

        self::assertStringContainsString('for "c"', $failure->getMessage());
        self::assertStringContainsString('proto-max-bulk-len', $failure->getMessage());
        self::assertEqualsCanonicalizing(['a', 'b'], $keys);
    }

    public function testJobsThatTheEngineTookBeforeItsMemoryWasFullAreAccepted(): void
    {
        $redis = $this->engine(['proto-max-bulk-len' => '1mb']);
        $broker = new RedisBroker($redis->url());
        $submit = fn(Job ...$jobs): int
            => $broker->submit($this->queue(), array_values($jobs), 100, 'client', false)->accepted;
        self::assertSame(1, $submit(new Job('first', 'frame')));
        $redis->command('CONFIG', 'SET', 'maxmemory', (string) ($this->engineInfo('used_memory') + 2_500_000));
        $accepted = $submit(...array_map(
            static fn(int $i): Job => new Job("job-{$i}", str_repeat('x', 900_000)),
            range(1, 6),
        ));
        $redis->command('CONFIG', 'SET', 'maxmemory', '1mb');
        self::thrown(QueueFullException::class, static fn() => $submit(new Job('last', 'frame')));

        self::assertLessThan(6, $accepted);
        self::assertSame($this->statistics()['waiting'], 1 + $accepted);
    }

    public function testEachCallerLearnsWhyTheEngineDidNotStoreItsJob(): void
    {
        $redis = $this->engine(['proto-max-bulk-len' => '1mb']);
        $executor = $this->executor();
        $executor->dispatch('time');
        $redis->command('CONFIG', 'SET', 'maxmemory', (string) ($this->engineInfo('used_memory') + 2_500_000));
        $value = str_repeat('x', 900_000);
        $dispatches = array_map(
            static fn() => async(static fn(): string => $executor->dispatch(static fn(): int => \strlen($value))),
            range(1, 6),
        );
        [$failures] = awaitAll($dispatches);

        self::assertNotSame([], $failures);
        foreach ($failures as $failure) {
            self::assertInstanceOf(QueueFullException::class, $failure);
            self::assertStringContainsString('its memory is full', $failure->getMessage());
        }
        self::assertSame(7 - \count($failures), $this->statistics()['waiting']);
    }

    public function testTheBrokerAcceptsTheJobsBeforeOneThatIsTooLarge(): void
    {
        $broker = new RedisBroker($this->engine(['proto-max-bulk-len' => '1mb'])->url());
        $jobs = [new Job('a', 'frame'), new Job('b', str_repeat('x', 2 << 20)), new Job('c', 'frame')];
        $result = $broker->submit($this->queue(), $jobs, 100, 'client', false);

        self::assertSame(1, $result->accepted);
        self::assertInstanceOf(PayloadTooLargeException::class, $result->refusal);
        self::assertStringContainsString('The job b has', $result->refusal->getMessage());
        self::assertSame(1, $this->statistics()['waiting']);
        self::thrown(
            PayloadTooLargeException::class,
            fn() => $broker->submit($this->queue(), \array_slice($jobs, 1), 100, 'client', false),
        );
    }

    public function testAReportThatTheEngineDoesNotAcceptIsDropped(): void
    {
        $redis = $this->engine(['proto-max-bulk-len' => '1mb']);
        $executor = $this->executor();
        $this->agentAt($redis->url(), $this->queue(), 1);
        self::assertSame(1, $executor->submit(static fn(): int => 1)->await());
        $connections = $this->engineInfo('total_connections_received');
        $report = static function (): int {
            TaskContext::current()->report(str_repeat('x', 2 << 20));

            return 2;
        };
        self::assertSame(2, $executor->submit($report)->await());
        Eventually::holds(fn(): bool => $this->statistics()['done_total'] === 2, 'it is done');

        self::assertLessThanOrEqual(4, $this->engineInfo('total_connections_received') - $connections);
    }
}

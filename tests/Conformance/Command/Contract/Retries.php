<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Command\Contract;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use Spindle\Command\Command;
use Spindle\Command\RetryPolicy;
use Spindle\LauncherException;
use Spindle\Tests\Async;
use Spindle\Tests\Conformance\Command\CommandPoolTestCase;
use Spindle\Tests\Eventually;
use Spindle\Tests\Text;

/**
 * Attempts after the first one.
 *
 * @phpstan-require-extends CommandPoolTestCase
 */
trait Retries
{
    /** Returns a shell line that counts its attempts in a file and then runs the given commands. */
    private function counting(string $then): string
    {
        return "echo x >> {$this->path('attempts')}; n=\$(wc -l < {$this->path('attempts')}); echo out \$n; {$then}";
    }

    public function testAFailureIsTriedAgainUntilItSucceeds(): void
    {
        $result = $this->pool(
            1,
            new RetryPolicy(5, delay: 0.01),
        )->execute(Command::shell($this->counting('test $n -ge 3')));

        self::assertTrue($result->succeeded());
        self::assertSame(3, $result->attempts);
        self::assertSame("out 3\n", $result->stdout(), 'the output is that of the last attempt');
    }

    public function testAFailureIsTriedNoOftenerThanTold(): void
    {
        $run = $this->pool(1, new RetryPolicy(2, delay: 0.0))->run(['k' => Command::shell($this->counting('exit 4'))]);
        foreach ($run as $key => $result) {
            self::assertSame(['k', 4, 3], [$key, $result->exitCode, $result->attempts]);
            self::assertStringContainsString('attempt 3', $result->describe());
        }
        self::assertSame([0, 1], [$run->getReturn()->succeeded, $run->getReturn()->failed]);
        self::assertCount(3, Text::lines($this->path('attempts')));
    }

    public function testEachKindOfFailureIsRetriedOnlyIfThePolicySaysSo(): void
    {
        $exit = Command::shell('exit 4');
        $signal = Command::shell('kill -9 $$');
        $timeout = Command::of('sleep', '9')->withTimeout(0.05);
        $idle = Command::of('sleep', '9')->withIdleTimeout(0.05);
        $attempts = fn(RetryPolicy $policy): array => array_map(
            static fn($result) => $result->attempts,
            iterator_to_array($this->pool(4, $policy, gracePeriod: 0.1)->runInOrder([$exit, $signal, $timeout, $idle])),
        );

        self::assertSame([2, 2, 2, 2], $attempts(new RetryPolicy(1, delay: 0.0)));
        self::assertSame([1, 2, 2, 2], $attempts(new RetryPolicy(1, onExit: false, delay: 0.0)));
        self::assertSame([1, 2, 2, 2], $attempts(new RetryPolicy(1, onExit: [3, 5], delay: 0.0)));
        self::assertSame([2, 1, 2, 2], $attempts(new RetryPolicy(1, onExit: [4], onSignal: false, delay: 0.0)));
        self::assertSame([2, 2, 1, 1], $attempts(new RetryPolicy(1, onTimeout: false, delay: 0.0)));
    }

    public function testTheDelayGrowsAndItsSlotIsFreeMeanwhile(): void
    {
        $start = hrtime(true);
        $order = [];
        foreach ($this->pool(1, new RetryPolicy(2, delay: 0.1, factor: 2.0, jitter: 0.0))->run([
            'again' => Command::of('false'),
            'other' => Command::of('true'),
        ]) as $key => $result) {
            $order[] = $key;
        }

        self::assertSame(['other', 'again'], $order);
        self::assertGreaterThanOrEqual(0.3, (hrtime(true) - $start) / 1e9);
    }

    public function testACommandThatCannotBeStartedIsNotRetried(): void
    {
        self::assertSame(1, $this->pool(1, 3)->execute(Command::of('/no/such/program'))->attempts);
    }

    public function testAnInputThatCannotBeReadTwiceIsNotTriedAgain(): void
    {
        $pool = $this->pool(1, new RetryPolicy(1, delay: 0.0));
        $fails = Command::shell('cat; false');
        $twice = $pool->execute($fails->withInput(str_repeat('x', 300_000)));

        self::assertSame(1, $pool->execute($fails->withInput(['a', 'b']))->attempts);
        self::assertSame(2, $twice->attempts);
        self::assertSame(300_000, \strlen($twice->stdout()));
    }

    public function testACancelledCommandIsNotTriedAgain(): void
    {
        $pool = $this->pool(1, new RetryPolicy(50, delay: 0.0));
        $cancellation = new DeferredCancellation();
        $command = Command::shell($this->counting('exec sleep 20'));
        $running = Async::run(static fn() => $pool->execute($command, $cancellation->getCancellation()));
        Eventually::holds(fn(): bool => Text::lines($this->path('attempts')) !== [], 'it runs');
        $cancellation->cancel();
        $this->expectException(CancelledException::class);
        $running->await();
    }

    public function testStatisticsCountCurrentAndFinishedCommands(): void
    {
        $pool = $this->pool(2, new RetryPolicy(1, delay: 0.0));
        $gate = $this->path('gate');
        $passing = Command::shell("until test -e {$gate}; do sleep 0.05; done");
        $run = Async::run(
            static fn(): array => iterator_to_array($pool->run([$passing, $passing, $passing, Command::of('false')])),
        );
        Eventually::holds(static fn(): bool => $pool->statistics()['waiting'] === 2, 'two run and two wait');
        self::assertSame(
            [
                'in_use' => 2,
                'max' => 2,
                'waiting' => 2,
                'finished_total' => 0,
                'failed_total' => 0,
                'retried_total' => 0,
            ],
            $pool->statistics(),
        );
        touch($gate);
        $run->await();

        self::assertSame(
            [
                'in_use' => 0,
                'max' => 2,
                'waiting' => 0,
                'finished_total' => 4,
                'failed_total' => 1,
                'retried_total' => 1,
            ],
            $pool->statistics(),
        );
    }

    public function testACommandThatPausesBeforeItsNextAttemptCanBeCancelled(): void
    {
        $pool = $this->pool(1, new RetryPolicy(1, delay: 20.0, jitter: 0.0));
        $running = Async::run(static fn() => $pool->execute(Command::of('false')));
        Eventually::holds(static fn(): bool => $pool->statistics()['retried_total'] === 1, 'it pauses');
        $start = hrtime(true);
        $pool->cancelAll();
        $result = $running->await();

        self::assertTrue($result->cancelled);
        self::assertSame(1, $result->attempts);
        self::assertLessThan(10.0, (hrtime(true) - $start) / 1e9);
    }

    public function testClosingThePoolFailsACommandThatPausesBeforeItsNextAttempt(): void
    {
        $pool = $this->pool(1, new RetryPolicy(1, delay: 20.0, jitter: 0.0));
        $running = Async::run(static fn() => $pool->execute(Command::of('false')));
        Eventually::holds(static fn(): bool => $pool->statistics()['retried_total'] === 1, 'it pauses');
        $pool->kill();
        $this->expectException(LauncherException::class);
        $running->await();
    }

    public function testAClosureGetsTheOutputOfEachAttempt(): void
    {
        $received = '';
        $this->pool(1, new RetryPolicy(2, delay: 0.0))->execute(
            Command::shell($this->counting('false'))->withStdout(
                static function (string $bytes) use (&$received): void {
                    $received .= $bytes;
                },
            ),
        );

        self::assertSame("out 1\nout 2\nout 3\n", $received);
    }
}

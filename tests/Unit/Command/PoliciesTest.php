<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Command;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Command\CommandPool;
use Spindle\Command\CommandPoolOptions;
use Spindle\Command\CommandResult;
use Spindle\Command\HaltPolicy;
use Spindle\Command\RetryPolicy;

/** Retries, early ends of runs, and settings that are rejected. */
final class PoliciesTest extends TestCase
{
    use MakesResults;

    /** @return iterable<string, array{RetryPolicy, CommandResult, bool}> */
    public static function outcomes(): iterable
    {
        $policy = new RetryPolicy(2);
        $failure = self::resultOf(exitCode: 3);
        $signal = self::resultOf(exitCode: null, signal: 9);
        $timeout = self::resultOf(exitCode: null, signal: 15, timedOut: true, error: 'timed out');
        yield 'a success' => [$policy, self::resultOf(), false];
        yield 'a failure' => [$policy, $failure, true];
        yield 'a second failure' => [$policy, self::resultOf(exitCode: 3, attempts: 2), true];
        yield 'a third failure' => [$policy, self::resultOf(exitCode: 3, attempts: 3), false];
        yield 'a failure without retries' => [new RetryPolicy(0), $failure, false];
        yield 'a failure that is not to be retried' => [new RetryPolicy(2, onExit: false), $failure, false];
        yield 'an exit code of those named' => [new RetryPolicy(2, onExit: [2, 3]), $failure, true];
        yield 'an exit code of no interest' => [new RetryPolicy(2, onExit: [2, 4]), $failure, false];
        yield 'the only exit code that is retried' => [new RetryPolicy(2, onExit: 3), $failure, true];
        yield 'another exit code than the only one' => [new RetryPolicy(2, onExit: 4), $failure, false];
        yield 'an exit code in a range with others' => [new RetryPolicy(2, onExit: range(0, 300)), $failure, true];
        yield 'no code of a failure' => [new RetryPolicy(2, onExit: 0), $failure, false];
        yield 'a signal' => [$policy, $signal, true];
        yield 'a signal that is not to be retried' => [new RetryPolicy(2, onSignal: false), $signal, false];
        yield 'a timeout' => [$policy, $timeout, true];
        yield 'a timeout that is not to be retried' => [new RetryPolicy(2, onTimeout: false), $timeout, false];
        yield 'a timeout whose command exited well' => [
            $policy,
            self::resultOf(timedOut: true, error: 'timed out'),
            true,
        ];
        yield 'a command that was cancelled' => [
            $policy,
            self::resultOf(exitCode: null, signal: 15, cancelled: true, error: 'cancelled'),
            false,
        ];
        yield 'a command that could not be started' => [
            $policy,
            self::resultOf(exitCode: 127, error: 'could not be started'),
            false,
        ];
    }

    #[DataProvider('outcomes')]
    public function testRetriedResults(RetryPolicy $policy, CommandResult $result, bool $again): void
    {
        self::assertSame($again, $policy->shouldRetry($result));
    }

    public function testTheDelayGrowsUpToItsLimit(): void
    {
        $policy = new RetryPolicy(9, delay: 0.5, factor: 3.0, maxDelay: 10.0, jitter: 0.0);

        self::assertSame([0.5, 1.5, 4.5, 10.0, 10.0], array_map($policy->delayAfter(...), [1, 2, 3, 4, 500]));
    }

    public function testWithoutADelayThereIsNoneHoweverOften(): void
    {
        $policy = new RetryPolicy(9, delay: 0.0);

        self::assertSame([0.0, 0.0, 0.0], array_map($policy->delayAfter(...), [1, 2, 5000]));
    }

    public function testJitterTakesUpToItsShareAway(): void
    {
        $policy = new RetryPolicy(1, delay: 1.0, jitter: 0.5);
        $delays = [$policy->delayAfter(1)];
        for ($i = 0; $i < 200; ++$i) {
            $delays[] = $policy->delayAfter(1);
        }

        self::assertGreaterThanOrEqual(0.5, min($delays));
        self::assertLessThanOrEqual(1.0, max($delays));
        self::assertGreaterThan(0.2, max($delays) - min($delays));
    }

    /** @return iterable<string, array{HaltPolicy, int, int, bool}> */
    public static function counts(): iterable
    {
        yield 'too few failures' => [HaltPolicy::soonAfterFailures(2), 50, 1, false];
        yield 'enough failures' => [HaltPolicy::nowAfterFailures(2), 50, 2, true];
        yield 'too few successes' => [HaltPolicy::soonAfterSuccesses(2), 1, 50, false];
        yield 'enough successes' => [HaltPolicy::nowAfterSuccesses(2), 2, 50, true];
        yield 'too small a share of failures' => [HaltPolicy::soonAfterFailureShare(0.1), 31, 3, false];
        yield 'the share of failures' => [HaltPolicy::nowAfterFailureShare(0.1), 27, 3, true];
        yield 'a share that can not be multiplied exactly' => [HaltPolicy::soonAfterFailureShare(0.28), 18, 7, true];
        yield 'the share of failures, but only two' => [HaltPolicy::soonAfterFailureShare(0.1), 0, 2, false];
        yield 'too small a share of successes' => [HaltPolicy::soonAfterSuccessShare(0.5), 3, 4, false];
        yield 'the share of successes' => [HaltPolicy::nowAfterSuccessShare(0.5), 3, 3, true];
        yield 'all have failed' => [HaltPolicy::soonAfterFailureShare(1.0), 0, 3, true];
        yield 'all but one have failed' => [HaltPolicy::soonAfterFailureShare(1.0), 1, 300, false];
    }

    public function testAShareOfWholePercentIsReachedExactly(): void
    {
        foreach (range(1, 100) as $percent) {
            foreach ([100, 200, 300, 700, 10_000] as $ended) {
                $failed = intdiv($percent * $ended, 100);
                foreach ([$percent / 100, (float) "{$percent}e-2"] as $share) {
                    $policy = HaltPolicy::soonAfterFailureShare($share);

                    self::assertSame($failed >= 3, $policy->isReached($ended - $failed, $failed));
                    self::assertFalse($policy->isReached($ended - $failed + 1, $failed - 1));
                }
            }
        }
    }

    #[DataProvider('counts')]
    public function testWhenARunHalts(HaltPolicy $policy, int $succeeded, int $failed, bool $halts): void
    {
        self::assertSame($halts, $policy->isReached($succeeded, $failed));
    }

    public function testOnlyNowCancelsRunningCommands(): void
    {
        self::assertTrue(HaltPolicy::nowAfterFailures(1)->cancelsRunning);
        self::assertFalse(HaltPolicy::soonAfterFailures(1)->cancelsRunning);
        self::assertTrue(HaltPolicy::nowAfterSuccessShare(0.1)->cancelsRunning);
        self::assertFalse(HaltPolicy::soonAfterSuccessShare(0.1)->cancelsRunning);
    }

    /** @return iterable<string, array{\Closure(): mixed}> */
    public static function nonsense(): iterable
    {
        yield 'negative retries' => [static fn() => new RetryPolicy(-1)];
        yield 'a negative delay' => [static fn() => new RetryPolicy(1, delay: -0.1)];
        yield 'a factor that shrinks' => [static fn() => new RetryPolicy(1, factor: 0.5)];
        yield 'a negative limit' => [static fn() => new RetryPolicy(1, maxDelay: -1.0)];
        yield 'a negative jitter' => [static fn() => new RetryPolicy(1, jitter: -0.1)];
        yield 'a jitter beyond all' => [static fn() => new RetryPolicy(1, jitter: 1.1)];
        yield 'no delay that is a number' => [static fn() => new RetryPolicy(1, delay: \NAN)];
        yield 'a halt on nothing' => [static fn() => HaltPolicy::soonAfterFailures(0)];
        yield 'a halt on a share that is no number' => [static fn() => HaltPolicy::nowAfterFailureShare(\NAN)];
        yield 'a halt on no share' => [static fn() => HaltPolicy::nowAfterFailureShare(0.0)];
        yield 'a halt on more than all' => [static fn() => HaltPolicy::nowAfterSuccessShare(1.1)];
        yield 'no concurrency' => [static fn() => new CommandPool(0)];
        yield 'negative retries of a pool' => [static fn() => new CommandPool(1, -1)];
        yield 'a negative grace period' => [static fn() => new CommandPoolOptions(gracePeriod: -1.0)];
        yield 'an endless grace period' => [static fn() => new CommandPoolOptions(gracePeriod: \INF)];
        yield 'a negative lookahead' => [static fn() => new CommandPoolOptions(lookahead: -1)];
        yield 'more at once than 32 bits can count' => [static fn() => new CommandPool(\PHP_INT_MAX)];
        yield 'a pool that is resized to more' => [static fn() => (new CommandPool(1))->resize((1 << 32) + 1)];
        yield 'more retries than can be counted' => [static fn() => new CommandPool(1, \PHP_INT_MAX)];
        yield 'more lookahead than can be counted' => [static fn() => new CommandPoolOptions(lookahead: \PHP_INT_MAX)];
        yield 'a delay that never ends' => [static fn() => new RetryPolicy(1, delay: \INF)];
        yield 'a limit of delays that no clock reaches' => [static fn() => new RetryPolicy(1, maxDelay: 1e30)];
        foreach (['75', 75.0, null] as $code) {
            yield 'the exit code ' . var_export($code, true) => [
                static fn() => new RetryPolicy(1, onExit: [75, $code]), // @phpstan-ignore argument.type
            ];
        }
        yield 'a factor that is no number' => [static fn() => new RetryPolicy(1, factor: \NAN)];
        yield 'a pool that is resized to nothing' => [static fn() => (new CommandPool(1))->resize(0)];
    }

    /** @param \Closure(): mixed $make */
    #[DataProvider('nonsense')]
    public function testASettingThatMakesNoSenseIsRefused(\Closure $make): void
    {
        $this->expectException(\ValueError::class);
        $make();
    }

    public function testAMessageShowsAnExitCodeOnlyInPart(): void
    {
        $circular = [];
        $circular['a'] = &$circular;
        foreach ([[$circular, 'array'], [str_repeat('x', 1000), "'" . str_repeat('x', 79) . '…']] as [$code, $shown]) {
            try {
                new RetryPolicy(1, onExit: [$code]); // @phpstan-ignore argument.type
                self::fail();
            } catch (\ValueError $error) {
                self::assertStringEndsWith("must be whole numbers, such as 75, not {$shown}", $error->getMessage());
            }
        }
    }
}

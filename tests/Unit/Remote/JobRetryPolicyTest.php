<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Remote;

use PHPUnit\Framework\Attributes\DataProvider;
use Spindle\Remote\JobRetryPolicy;
use Spindle\Tests\TidyTestCase;

final class JobRetryPolicyTest extends TidyTestCase
{
    public function testFiveTriesAndThreeCrashesAreTheDefault(): void
    {
        $policy = new JobRetryPolicy();

        self::assertSame([5, 3], [$policy->maxAttempts, $policy->maxCrashes]);
    }

    public function testNoneIsOneTry(): void
    {
        self::assertSame([1, 1], [JobRetryPolicy::none()->maxAttempts, JobRetryPolicy::none()->maxCrashes]);
    }

    public function testTheDelayGrowsWithTheFailuresUpToItsMost(): void
    {
        $policy = new JobRetryPolicy(delay: 0.5, factor: 3.0, maxDelay: 4.0, jitter: 0.0);

        self::assertSame([0.5, 1.5, 4.0, 4.0], array_map($policy->delayAfter(...), [1, 2, 3, 1000]));
    }

    public function testJitterShortensADelayByItsShareAtMost(): void
    {
        $policy = new JobRetryPolicy(delay: 8.0, jitter: 0.25);
        $delays = array_map(static fn(): float => $policy->delayAfter(1), range(1, 100));

        self::assertGreaterThanOrEqual(6.0, min($delays));
        self::assertLessThanOrEqual(8.0, max($delays));
        self::assertGreaterThan(min($delays), max($delays));
    }

    /** @param \Closure(): JobRetryPolicy $make */
    #[DataProvider('outOfRange')]
    public function testNumbersOutOfTheirRangeAreRefused(\Closure $make): void
    {
        $this->expectException(\ValueError::class);
        $make();
    }

    /** @return iterable<string, array{\Closure(): JobRetryPolicy}> */
    public static function outOfRange(): iterable
    {
        yield 'no try' => [static fn() => new JobRetryPolicy(maxAttempts: 0)];
        yield 'too many tries' => [static fn() => new JobRetryPolicy(maxAttempts: 1001)];
        yield 'no crash' => [static fn() => new JobRetryPolicy(maxCrashes: 0)];
        yield 'too many crashes' => [static fn() => new JobRetryPolicy(maxCrashes: 1001)];
        yield 'a delay below nothing' => [static fn() => new JobRetryPolicy(delay: -1.0)];
        yield 'a factor that shortens' => [static fn() => new JobRetryPolicy(factor: 0.5)];
        yield 'a most below nothing' => [static fn() => new JobRetryPolicy(maxDelay: -1.0)];
        yield 'more jitter than all' => [static fn() => new JobRetryPolicy(jitter: 1.5)];
        yield 'no number' => [static fn() => new JobRetryPolicy(delay: \NAN)];
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Worker;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Spindle\Worker\TaskException;
use Spindle\Worker\TaskFailedException;
use Spindle\Worker\TaskRetryPolicy;
use Spindle\Worker\TaskTimeoutException;
use Spindle\Worker\Thrown;
use Spindle\Worker\WorkerCrashedException;

final class TaskRetryPolicyTest extends TestCase
{
    /**
     * @return iterable<string, array{TaskRetryPolicy, TaskException, int, int, bool}> policy, failure, attempts,
     *         crashes, whether to retry
     */
    public static function decisions(): iterable
    {
        $threw = TaskFailedException::threw(Thrown::of(new \DomainException()), null, 1, null);
        $crashed = WorkerCrashedException::died(1, null, null, true, '', 0, 1, null);
        $late = TaskTimeoutException::after(1.0, 1, null);
        yield 'none' => [new TaskRetryPolicy(0), $threw, 1, 0, false];
        yield 'the first of two' => [new TaskRetryPolicy(2), $threw, 1, 0, true];
        yield 'the second of two' => [new TaskRetryPolicy(2), $threw, 2, 0, true];
        yield 'a third of two' => [new TaskRetryPolicy(2), $threw, 3, 0, false];
        yield 'a crash' => [new TaskRetryPolicy(9), $crashed, 1, 1, true];
        yield 'a second crash' => [new TaskRetryPolicy(9), $crashed, 2, 2, false];
        yield 'a crash after an exception' => [new TaskRetryPolicy(9), $crashed, 2, 1, true];
        yield 'no crash' => [new TaskRetryPolicy(9, onCrash: false), $crashed, 1, 1, false];
        yield 'a timeout' => [new TaskRetryPolicy(9), $late, 1, 0, true];
        yield 'no timeout' => [new TaskRetryPolicy(9, onTimeout: false), $late, 1, 0, false];
        yield 'no exception' => [new TaskRetryPolicy(9, onThrow: false), $threw, 1, 0, false];
        yield 'an exception of the list' => [
            new TaskRetryPolicy(9, onThrow: [\RuntimeException::class, \LogicException::class]),
            $threw,
            1,
            0,
            true,
        ];
        yield 'an exception that is not of it' => [
            new TaskRetryPolicy(9, onThrow: [\RuntimeException::class]),
            $threw,
            1,
            0,
            false,
        ];
        yield 'the only exception' => [new TaskRetryPolicy(9, onThrow: \LogicException::class), $threw, 1, 0, true];
        yield 'not the only exception' => [new TaskRetryPolicy(9, onThrow: \TypeError::class), $threw, 1, 0, false];
        yield 'an exception of no list' => [new TaskRetryPolicy(9, onThrow: []), $threw, 1, 0, false];
        yield 'a crash, whatever the list' => [new TaskRetryPolicy(9, onThrow: []), $crashed, 1, 1, true];
    }

    #[TestWith([[5]])]
    #[TestWith(['1'])]
    #[TestWith([['']])]
    #[TestWith([['Runtime Exception']])]
    #[TestWith([['A::class']])]
    public function testATypeThatIsNoNameOfAClassIsRefused(mixed $types): void
    {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage('onThrow must be true, false or names of classes, such as TypeError::class');
        new TaskRetryPolicy(1, onThrow: $types); // @phpstan-ignore argument.type
    }

    public function testNamesOfAllKindsOfClassesAreAccepted(): void
    {
        $anonymous = new class extends \DomainException {};
        $failure = TaskFailedException::threw(Thrown::of($anonymous), null, 1, null);
        $names = ['\\' . \TypeError::class, TaskException::class, 'Ärger\\É1', $anonymous::class];

        $policy = new TaskRetryPolicy(9, onThrow: $names); // @phpstan-ignore argument.type
        self::assertTrue($policy->shouldRetry($failure, 1, 0));
    }

    #[DataProvider('decisions')]
    public function testAPolicyDecidesByCauseAndNumberOfAttempts(
        TaskRetryPolicy $policy,
        TaskException $failure,
        int $attempts,
        int $crashes,
        bool $expected,
    ): void {
        self::assertSame($expected, $policy->shouldRetry($failure, $attempts, $crashes));
    }

    public function testTheDelayGrowsWithTheAttempts(): void
    {
        $policy = new TaskRetryPolicy(9, delay: 0.5, factor: 3.0, maxDelay: 4.0, jitter: 0.0);

        self::assertSame([0.5, 1.5, 4.0], array_map($policy->delayAfter(...), [1, 2, 3]));
    }

    public function testNumbersOutOfTheirRangeAreRefused(): void
    {
        $refused = 0;
        foreach ([
            static fn() => new TaskRetryPolicy(-1),
            static fn() => new TaskRetryPolicy(1, delay: -1.0),
            static fn() => new TaskRetryPolicy(1, jitter: 2.0),
        ] as $make) {
            try {
                $make();
            } catch (\ValueError) {
                ++$refused;
            }
        }

        self::assertSame(3, $refused);
    }
}

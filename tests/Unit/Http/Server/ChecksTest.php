<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Server;

use Amp\CancelledException;
use Amp\DeferredFuture;
use PHPUnit\Framework\TestCase;
use Revolt\EventLoop;
use Spindle\Http\Internal\Server\Checks;
use Spindle\Tests\VirtualTime;

use function Amp\async;
use function Amp\delay;

final class ChecksTest extends TestCase
{
    use VirtualTime;

    public function testEachCheckReportsItsOwnFailure(): void
    {
        $results = self::resultsOf([
            'works' => static function (): void {},
            'fails' => static fn() => throw new \RuntimeException('no such table'),
            'is cancelled by itself' => static fn() => throw new CancelledException(),
            'suspends' => static fn() => delay(0.01),
            'returns false' => static fn(): bool => false,
            'returns another value' => static fn(): array => [],
        ]);

        self::assertSame(
            [
                'works' => null,
                'fails' => 'no such table',
                'is cancelled by itself' => 'The operation was cancelled',
                'suspends' => null,
                'returns false' => 'It returned false',
                'returns another value' => null,
            ],
            $results,
        );
    }

    public function testLateChecksDoNotDelayTheResultFurther(): void
    {
        $results = self::resultsOf([
            'late' => static fn() => delay(1.6),
            'later' => static function (): void {
                delay(1.5);
                throw new \RuntimeException('ignored');
            },
            'works' => static fn() => delay(0.1),
        ]);

        self::assertSame(['late' => Checks::LATE, 'later' => Checks::LATE, 'works' => null], $results);
    }

    public function testALateCheckIsReportedWithinASecond(): void
    {
        $before = $this->now();
        self::resultsOf(['late' => static fn() => delay(1.5)]);

        self::assertEqualsWithDelta(Checks::TIMEOUT_SECONDS, $this->now() - $before, 0.01);
    }

    public function testACheckThatHangsIsLateUntilItEndsAndIsNotStartedTwice(): void
    {
        /** @var DeferredFuture<null> $gate */
        $gate = new DeferredFuture();
        $runs = new \ArrayObject();
        $checks = new Checks(['hangs' => static function () use ($gate, $runs): void {
            $runs->append(true);
            $gate->getFuture()->await();
        }]);
        $server = EventLoop::delay(10.0, static function (): void {}); // keeps the loop going, as a server does
        foreach ([async($checks->run(...)), async($checks->run(...))] as $results) {
            self::assertSame(['hangs' => Checks::LATE], $results->await());
        }
        $before = $this->now();
        self::assertSame(['hangs' => Checks::LATE], $checks->run());
        self::assertEqualsWithDelta($before, $this->now(), 0.01, 'it is late by now');
        self::assertCount(1, $runs);

        $gate->complete();
        delay(0);
        self::assertSame(['hangs' => null], $checks->run());
        self::assertCount(2, $runs);
        EventLoop::cancel($server);
    }

    /**
     * @param array<string, \Closure(): mixed> $checks
     *
     * @return array<string, string|null>
     */
    private static function resultsOf(array $checks): array
    {
        return (new Checks($checks))->run();
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Server;

use Amp\CancelledException;
use Amp\DeferredFuture;
use PHPUnit\Framework\Attributes\Group;
use PHPUnit\Framework\TestCase;
use Spindle\Http\Internal\Server\Checks;

use function Amp\async;
use function Amp\delay;

final class ChecksTest extends TestCase
{
    public function testEachSaysForItselfWhatIsWrong(): void
    {
        $results = self::resultsOf([
            'works' => static function (): void {},
            'fails' => static fn() => throw new \RuntimeException('no such table'),
            'is cancelled by itself' => static fn() => throw new CancelledException(),
            'suspends' => static fn() => delay(0.01),
        ]);

        self::assertSame(['works' => null, 'fails' => 'no such table', 'is cancelled by itself' => 'The operation was cancelled', 'suspends' => null], $results);
    }

    public function testThoseThatAreLateHoldNobodyUpForLonger(): void
    {
        $results = self::resultsOf([
            'late' => static fn() => delay(1.6),
            'later' => static function (): void {
                delay(1.5);
                throw new \RuntimeException('of which nobody hears');
            },
            'works' => static fn() => delay(0.1),
        ]);

        self::assertSame(['late' => Checks::LATE, 'later' => Checks::LATE, 'works' => null], $results);
    }

    #[Group('quiet')]
    public function testWhoAsksForASecondAtMostIsToldThatACheckIsLate(): void
    {
        $before = hrtime(true);
        self::resultsOf(['late' => static fn() => delay(1.5)]);

        self::assertLessThan(0.85, (hrtime(true) - $before) / 1e9);
    }

    public function testOneThatHangsIsLateUntilItEndsAndIsNotRunTwiceAtOnce(): void
    {
        /** @var DeferredFuture<null> $gate */
        $gate = new DeferredFuture();
        $runs = new \ArrayObject();
        $checks = new Checks(['hangs' => static function () use ($gate, $runs): void {
            $runs->append(true);
            $gate->getFuture()->await();
        }]);
        foreach ([async($checks->run(...)), async($checks->run(...))] as $results) {
            self::assertSame(['hangs' => Checks::LATE], $results->await());
        }
        $before = hrtime(true);
        self::assertSame(['hangs' => Checks::LATE], $checks->run());
        self::assertLessThan(0.3, (hrtime(true) - $before) / 1e9, 'it is late by now');
        self::assertCount(1, $runs);

        $gate->complete();
        delay(0);
        self::assertSame(['hangs' => null], $checks->run());
        self::assertCount(2, $runs);
    }

    /**
     * @param array<string, \Closure(): void> $checks
     *
     * @return array<string, string|null>
     */
    private static function resultsOf(array $checks): array
    {
        return (new Checks($checks))->run();
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Server;

use Amp\CancelledException;
use PHPUnit\Framework\TestCase;
use Spindle\Http\Internal\Server\Checks;

use function Amp\delay;

final class ChecksTest extends TestCase
{
    public function testEachSaysForItselfWhatIsWrong(): void
    {
        $results = Checks::run([
            'works' => static function (): void {},
            'fails' => static fn() => throw new \RuntimeException('no such table'),
            'is cancelled by itself' => static fn() => throw new CancelledException(),
            'suspends' => static fn() => delay(0.01),
        ]);

        self::assertSame(['works' => null, 'fails' => 'no such table', 'is cancelled by itself' => 'The operation was cancelled', 'suspends' => null], $results);
    }

    public function testThoseThatAreLateHoldNobodyUpForLonger(): void
    {
        $results = Checks::run([
            'late' => static fn() => delay(1.6),
            'later' => static function (): void {
                delay(1.5);
                throw new \RuntimeException('of which nobody hears');
            },
            'works' => static fn() => delay(0.1),
        ]);

        self::assertSame(['late' => Checks::LATE, 'later' => Checks::LATE, 'works' => null], $results);
    }
}

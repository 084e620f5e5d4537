<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Server;

use PHPUnit\Framework\TestCase;
use Psr\Log\AbstractLogger;
use Spindle\Internal\RepeatedWarnings;
use Spindle\Internal\SafeLogger;
use Spindle\Tests\ReadsErrorLog;

final class RepeatedWarningsTest extends TestCase
{
    use ReadsErrorLog;

    private int $now = 0;

    public function testAContinuingEventIsReportedOnce(): void
    {
        $recurrences = new RepeatedWarnings(fn(): int => $this->now);
        self::assertTrue($recurrences->isNew('full'));
        for ($i = 0; $i < 10; ++$i) {
            $this->now += 59_000_000_000;
            self::assertFalse($recurrences->isNew('full'));
        }
        self::assertTrue($recurrences->isNew('slow'), 'which is something else');
    }

    public function testAnEventIsReportedAgainAfterAMinuteWithoutIt(): void
    {
        $recurrences = new RepeatedWarnings(fn(): int => $this->now);
        $recurrences->isNew('full');
        $this->now += 61_000_000_000;

        self::assertTrue($recurrences->isNew('full'));
        self::assertFalse($recurrences->isNew('full'));
    }

    public function testManyEventsNeedLittleMemory(): void
    {
        $recurrences = new RepeatedWarnings(fn(): int => $this->now);
        $before = memory_get_usage();
        for ($i = 0; $i < 100_000; ++$i) {
            $recurrences->isNew("kind {$i}");
        }

        self::assertLessThan($before + 500_000, memory_get_usage());
    }

    public function testALogThatCanNotBeWrittenIsReportedOnce(): void
    {
        $logger = new SafeLogger(new class extends AbstractLogger {
            /** @param array<mixed> $context */
            public function log($level, string|\Stringable $message, array $context = []): void
            {
                throw new \RuntimeException('no space left');
            }
        });
        $lines = $this->errorLogOf(static function () use ($logger): void {
            $logger->warning('one');
            $logger->warning('two');
        });

        self::assertCount(1, $lines);
        self::assertStringContainsString('no space left', $lines[0]);
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Bench;

use PHPUnit\Framework\TestCase;
use Spindle\Bench\Support\Line;
use Spindle\Bench\Support\Metric;
use Spindle\Bench\Support\Series;

/** @phpstan-import-type Data from Line */
final class LineTest extends TestCase
{
    /** Per round: the rate, the CPU seconds of all operations, and their number. */
    private const THIS = [[100.0, 0.002, 1_000], [50.0, 0.003, 1_000], [80.0, 0.004, 1_000]];
    private const THAT = [[50.0, 0.004, 1_000], [50.0, 0.003, 1_000], [20.0, 0.002, 1_000]];

    public function testRatiosAreTakenRoundByRoundWithTheirQuartiles(): void
    {
        $line = Line::of(self::series(self::THIS), self::series(self::THAT), Metric::figure('tasks/s'), self::cpu());

        self::assertSame(
            [
                'pool', 'tasks/s', '80', '50', '2.000', '1.500 … 3.000',
                '3.00', '3.00', '1.000', '0.750 … 1.500',
            ],
            $line->cells('1.0'),
        );
        self::assertCount(\count(Line::titles('1.0')), $line->cells('1.0'));
        self::assertSame(3, $line->rounds());
    }

    public function testWithoutAnotherCheckoutThereAreMediansAndQuartiles(): void
    {
        $line = Line::of(self::series(self::THIS), null, Metric::figure('ms', 1), self::cpu());

        self::assertSame(['pool', 'ms', '80.0', '65.0 … 90.0', '3.00', '2.50 … 3.50'], $line->cells(null));
        self::assertCount(\count(Line::titles(null)), $line->cells(null));
        self::assertSame(3, $line->rounds());
    }

    public function testALineIsTheSameWhenItComesBackFromJson(): void
    {
        $line = Line::of(self::series(self::THIS), self::series(self::THAT), Metric::figure('tasks/s'), self::cpu());
        /** @var Data $data */
        $data = json_decode(json_encode($line->toArray(), \JSON_THROW_ON_ERROR), true, flags: \JSON_THROW_ON_ERROR);

        self::assertSame($line->cells('1.0'), Line::read($data)->cells('1.0'));
    }

    public function testACheckoutThatFailsHasItsReasonAndNoRatio(): void
    {
        $failing = new Series('pool', static fn(): float => throw new \RuntimeException('its API does not fit'));
        $failing->measure(1);
        $line = Line::of(self::series(self::THIS), $failing, Metric::figure('tasks/s'), self::cpu());
        $line = $line->called('bulk', 'tasks in bulk');

        self::assertSame(
            ['bulk: tasks in bulk', 'tasks/s', '80', 'see below', '–', '–', '3.00', 'see below', '–', '–'],
            $line->cells('1.0'),
        );
        self::assertSame(['bulk: pool: its API does not fit'], $line->problems);
        self::assertSame(0, $line->rounds());
    }

    public function testARoundThatOneSideLacksDoesNotCount(): void
    {
        $that = self::series(\array_slice(self::THAT, 0, 2));
        $line = Line::of(self::series(self::THIS), $that, Metric::figure('tasks/s'), null);

        self::assertSame(
            ['pool', 'tasks/s', '80', '50', '1.500', '1.250 … 1.750', '–', '–', '–', '–'],
            $line->cells('1.0'),
        );
        self::assertSame(2, $line->rounds());
    }

    public function testCpuTimeIsTheSumOfItsPartsForEachOperation(): void
    {
        $series = new Series('script', static function (Series $series): float {
            $series->record(['cpu script' => 10e-6, 'cpu workers' => 30e-6]);

            return 1.0;
        });
        $series->measure(1);

        self::assertEqualsWithDelta([1 => 40.0], Metric::cpu(['cpu script', 'cpu workers'])->of($series), 1e-9);
    }

    private static function cpu(): Metric
    {
        return Metric::cpu(['cpu'], 1e6, 'count');
    }

    /** @param list<array{float, float, int}> $rounds */
    private static function series(array $rounds): Series
    {
        $series = new Series('pool', static function (Series $series) use (&$rounds): float {
            [$rate, $cpu, $count] = array_shift($rounds) ?? throw new \LogicException();
            $series->record(['cpu' => $cpu, 'count' => $count]);

            return $rate;
        });
        foreach (array_keys($rounds) as $round) {
            $series->measure($round + 1);
        }

        return $series;
    }
}

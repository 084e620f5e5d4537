<?php

declare(strict_types=1);

namespace Spindle\Bench\Support;

/** A column of a report: returns a cell for each series. */
final readonly class Column
{
    private const NO_VALUE = '–';

    /** @param \Closure(Series): ?string $cell */
    private function __construct(
        public string $title,
        private \Closure $cell,
    ) {}

    public static function median(string $title, int $decimals = 0): self
    {
        return new self(
            $title,
            static fn(Series $series): ?string => self::number($series->statistics()?->median, $decimals),
        );
    }

    public static function range(int $decimals = 0): self
    {
        return new self('min … max', static function (Series $series) use ($decimals): ?string {
            $statistics = $series->statistics();

            return $statistics === null
                ? null
                : self::number($statistics->min, $decimals) . ' … ' . self::number($statistics->max, $decimals);
        });
    }

    /** Returns the median of each round's ratio of the series to the base. */
    public static function ratioTo(string $title, Series $base): self
    {
        return new self(
            $title,
            static fn(Series $series): ?string => self::number($series->ratioTo($base)?->median, 3),
        );
    }

    /** Returns the median of each round's ratio of the base to the series. */
    public static function ratioOf(string $title, Series $base): self
    {
        return new self(
            $title,
            static fn(Series $series): ?string => self::number($base->ratioTo($series)?->median, 2),
        );
    }

    /** @param \Closure(Series): ?float $figure */
    public static function figure(string $title, \Closure $figure, int $decimals): self
    {
        return new self($title, static fn(Series $series): ?string => self::number($figure($series), $decimals));
    }

    /** Returns a column with a figure of the raw data. */
    public static function raw(string $title, string $name, int $decimals, float $factor = 1.0): self
    {
        return self::figure($title, static function (Series $series) use ($name, $factor): ?float {
            $median = $series->medianOf($name);

            return $median === null ? null : $factor * $median;
        }, $decimals);
    }

    public static function percent(string $title, string $name): self
    {
        return self::raw($title, $name, 0, 100.0);
    }

    public static function megabytes(string $title, string $name, int $decimals = 1): self
    {
        return self::raw($title, $name, $decimals, 1 / (1 << 20));
    }

    /** Returns the ratio of the base to the series, for a figure of the raw data. */
    public static function rawRatioOf(string $title, string $name, Series $base, int $decimals = 2): self
    {
        return self::figure(
            $title,
            static fn(Series $series): ?float
                => Statistics::ofRatios($base->byRound($name), $series->byRound($name))?->median,
            $decimals,
        );
    }

    public function cell(Series $series): string
    {
        return ($this->cell)($series) ?? self::NO_VALUE;
    }

    private static function number(?float $value, int $decimals): ?string
    {
        return $value === null ? null : number_format($value, $decimals);
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Bench\Support;

/**
 * Compares one contestant between this checkout and another, round by round.
 *
 * @phpstan-type ByRound array<int, float>
 * @phpstan-type Both array{this: ByRound, that: ByRound}
 * @phpstan-type Data array{
 *     title: string, unit: string, decimals: int, compared: bool, figure: Both, cpu: Both, problems: list<string>,
 * }
 */
final readonly class Line
{
    private const NO_VALUE = '–';

    /** Cell of a failed checkout; a warning has the reason. */
    private const SEE_WARNING = 'see below';

    /**
     * @param Both         $figure
     * @param Both         $cpu      microseconds per operation
     * @param list<string> $problems
     */
    private function __construct(
        public string $title,
        private string $unit,
        private int $decimals,
        private bool $isCompared,
        private array $figure,
        private array $cpu,
        public array $problems,
    ) {}

    /** @param Series|null $that series of the other checkout; null for none */
    public static function of(Series $one, ?Series $that, Metric $figure, ?Metric $cpu): self
    {
        $both = static fn(?Metric $metric): array => [
            'this' => $metric?->of($one) ?? [],
            'that' => $that === null ? [] : $metric?->of($that) ?? [],
        ];

        return new self(
            $one->subject(),
            $figure->unit,
            $figure->decimals,
            $that !== null,
            $both($figure),
            $both($cpu),
            [...$one->problems(), ...($that?->problems() ?? [])],
        );
    }

    /** Returns a line without figures, with the reason. */
    public static function missing(string $title, string $problem): self
    {
        $none = ['this' => [], 'that' => []];

        return new self($title, '', 0, true, $none, $none, ["{$title}: {$problem}"]);
    }

    /** @param Data $data from {@see toArray()} */
    public static function read(array $data): self
    {
        return new self(
            $data['title'],
            $data['unit'],
            $data['decimals'],
            $data['compared'],
            $data['figure'],
            $data['cpu'],
            $data['problems'],
        );
    }

    /** @return Data */
    public function toArray(): array
    {
        return [
            'title' => $this->title,
            'unit' => $this->unit,
            'decimals' => $this->decimals,
            'compared' => $this->isCompared,
            'figure' => $this->figure,
            'cpu' => $this->cpu,
            'problems' => $this->problems,
        ];
    }

    /** Returns a copy under its name in the core table. */
    public function called(string $name, string $title): self
    {
        $problems = array_map(static fn(string $problem): string => "{$name}: {$problem}", $this->problems);

        return self::read(['title' => "{$name}: {$title}", 'problems' => $problems] + $this->toArray());
    }

    /** @return int number of rounds in which both have a figure */
    public function rounds(): int
    {
        $that = $this->isCompared ? $this->figure['that'] : $this->figure['this'];

        return \count(array_intersect_key($this->figure['this'], $that));
    }

    /**
     * Returns the titles of the cells of {@see cells()}.
     *
     * @param string|null $other name of the other checkout; null for none
     *
     * @return list<string>
     */
    public static function titles(?string $other): array
    {
        return $other === null
            ? ['', 'unit', 'median', 'quartiles', 'CPU µs each', 'quartiles']
            : [
                '', 'unit', 'this', $other, 'this ÷ other', 'quartiles',
                'CPU µs each, this', $other, 'this ÷ other', 'quartiles',
            ];
    }

    /** @return list<string> cells of a table; ratios are medians and quartiles of each round's ratio */
    public function cells(?string $other): array
    {
        return [
            $this->title,
            $this->unit === '' ? self::NO_VALUE : $this->unit,
            ...($other === null
                ? [...self::alone($this->figure['this'], $this->decimals), ...self::alone($this->cpu['this'], 2)]
                : [...$this->beside($this->figure, $this->decimals), ...$this->beside($this->cpu, 2)]),
        ];
    }

    /**
     * @param ByRound $values
     *
     * @return array{string, string}
     */
    private static function alone(array $values, int $decimals): array
    {
        $all = self::statistics($values);

        return [self::number($all?->median, $decimals), self::quartiles($all, $decimals)];
    }

    /**
     * @param Both $values
     *
     * @return array{string, string, string, string}
     */
    private function beside(array $values, int $decimals): array
    {
        $ratios = Statistics::ofRatios($values['this'], $values['that']);

        return [
            self::number(self::statistics($values['this'])?->median, $decimals),
            $values['that'] === [] && $values['this'] !== [] && $this->problems !== []
                ? self::SEE_WARNING
                : self::number(self::statistics($values['that'])?->median, $decimals),
            self::number($ratios?->median, 3),
            self::quartiles($ratios, 3),
        ];
    }

    /** @param ByRound $values */
    private static function statistics(array $values): ?Statistics
    {
        return $values === [] ? null : Statistics::of($values);
    }

    private static function quartiles(?Statistics $all, int $decimals): string
    {
        return $all === null
            ? self::NO_VALUE
            : self::number($all->lower, $decimals) . ' … ' . self::number($all->upper, $decimals);
    }

    private static function number(?float $value, int $decimals): string
    {
        return $value === null ? self::NO_VALUE : number_format($value, $decimals);
    }
}

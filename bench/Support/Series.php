<?php

declare(strict_types=1);

namespace Spindle\Bench\Support;

/** One contestant or variant, which is measured once per round. */
final class Series
{
    /** @var array<int, float> by round */
    private array $values = [];

    /** @var list<array<string, mixed>> further figures of the measurements */
    private array $raw = [];

    /** @var array<string, true> */
    private array $problems = [];

    /** Name of the contestant in tables. */
    public readonly string $label;

    /**
     * @param \Closure(self): float $measure
     * @param string                $context  distinguishes series with the same label
     * @param Checkout|null         $checkout the measured Spindle; null for other contestants
     */
    public function __construct(
        private readonly string $contestant,
        private readonly \Closure $measure,
        private readonly string $context = '',
        public readonly ?Checkout $checkout = null,
    ) {
        $this->label = $checkout?->label($contestant) ?? $contestant;
    }

    /** @return self a series with a known value instead of a measurement */
    public static function constant(string $label, float $value): self
    {
        return new self($label, static fn(): float => $value);
    }

    /** Measures one round. A failure is stored as a problem, so that other series go on. */
    public function measure(int $round): void
    {
        try {
            $this->values[$round] = ($this->measure)($this);
        } catch (\RuntimeException $failure) {
            $this->note($failure->getMessage());
        }
    }

    /** @param array<string, mixed> $raw */
    public function record(array $raw): void
    {
        $this->raw[] = $raw;
    }

    public function note(string $problem): void
    {
        $this->problems[$problem] = true;
    }

    public function name(): string
    {
        return $this->label . ($this->context === '' ? '' : ", {$this->context}");
    }

    /** Returns a name that is the same for this contestant in every checkout. */
    public function subject(): string
    {
        return $this->contestant . ($this->context === '' ? '' : ", {$this->context}");
    }

    /** @return array<int, float> by round, without failed rounds */
    public function values(): array
    {
        return $this->values;
    }

    /** @return Statistics|null null when no measurement succeeded */
    public function statistics(): ?Statistics
    {
        return $this->values === [] ? null : Statistics::of($this->values);
    }

    public function ratioTo(self $base): ?Statistics
    {
        return Statistics::ofRatios($this->values, $base->values);
    }

    /** Returns by how much this series exceeds the base, round by round. */
    public function above(self $base): ?Statistics
    {
        $differences = [];
        foreach (array_intersect_key($this->values, $base->values) as $round => $value) {
            $differences[] = $value - $base->values[$round];
        }

        return $differences === [] ? null : Statistics::of($differences);
    }

    /** @return float|null median of a figure of the raw data */
    public function medianOf(string $figure): ?float
    {
        $values = array_filter(array_column($this->raw, $figure), is_numeric(...));

        return $values === [] ? null : Statistics::of(array_map(floatval(...), $values))->median;
    }

    /** @return array<int, float> a figure of the raw data for each successful round */
    public function byRound(string $figure): array
    {
        return array_combine(
            array_keys($this->values),
            array_map(
                static fn(array $one): float => is_numeric($one[$figure] ?? null) ? (float) $one[$figure] : 0.0,
                $this->raw,
            ),
        );
    }

    /** @return list<string> */
    public function problems(): array
    {
        return array_map(fn(string $problem): string => "{$this->name()}: {$problem}", array_keys($this->problems));
    }

    /**
     * @return array{
     *     label: string,
     *     context: string,
     *     values: array<int, float>,
     *     statistics: array<mixed>|null,
     *     problems: list<string>,
     *     raw: list<array<string, mixed>>,
     * }
     */
    public function toArray(): array
    {
        return [
            'label' => $this->label,
            'context' => $this->context,
            'values' => $this->values,
            'statistics' => $this->values === [] ? null : get_object_vars(Statistics::of($this->values)),
            'problems' => array_keys($this->problems),
            'raw' => $this->raw,
        ];
    }
}

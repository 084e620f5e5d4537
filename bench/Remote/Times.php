<?php

declare(strict_types=1);

namespace Spindle\Bench\Remote;

/** Statistics of many durations. */
final readonly class Times
{
    /** Upper bounds of the histogram in milliseconds. */
    private const BOUNDS = [
        1,
        2,
        5,
        10,
        20,
        50,
        100,
        200,
        500,
        1_000,
        2_000,
        5_000,
        8_000,
        9_000,
        10_000,
        11_000,
        12_000,
        15_000,
        30_000,
    ];

    /** @param list<float> $sorted milliseconds */
    private function __construct(private array $sorted) {}

    /** @param list<float> $milliseconds in any order */
    public static function of(array $milliseconds): self
    {
        sort($milliseconds);

        return new self($milliseconds);
    }

    /** @return float smallest value that this share does not exceed; 0.0 without values */
    public function percentile(float $share): float
    {
        return $this->sorted[max(0, (int) ceil(\count($this->sorted) * $share) - 1)] ?? 0.0;
    }

    /** @return array{p50: float, p99: float, longest: float, count: int} milliseconds */
    public function figures(): array
    {
        return [
            'p50' => $this->percentile(0.5),
            'p99' => $this->percentile(0.99),
            'longest' => $this->percentile(1.0),
            'count' => \count($this->sorted),
        ];
    }

    /**
     * @return array<string, int> number of values up to each bound and above the one before; empty classes are left out
     */
    public function histogram(): array
    {
        $histogram = [];
        foreach ($this->sorted as $one) {
            $bound = 'longer';
            foreach (self::BOUNDS as $candidate) {
                if ($one <= $candidate) {
                    $bound = "<= {$candidate} ms";
                    break;
                }
            }
            $histogram[$bound] = ($histogram[$bound] ?? 0) + 1;
        }

        return $histogram;
    }

    /** @return list<float> milliseconds, ascending */
    public function all(): array
    {
        return $this->sorted;
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run;

use Spindle\Cli\Internal\Duration;
use Spindle\Cli\Internal\UsageException;

/** The option --timeout: seconds, or a percentage of the median runtime of the jobs that have succeeded so far. */
final class TimeLimit
{
    private const ALLOWED = Duration::FORM . ', or a percentage of the median run time such as 200%';

    /** Number of jobs that must succeed before a percentage limits further jobs, as in GNU parallel. */
    private const MIN_JOBS = 3;

    /** Smallest limit that results from a percentage, in seconds. Such limits are rounded to milliseconds. */
    private const MIN_SECONDS = 0.001;

    private readonly MedianRuntime $median;

    private function __construct(private readonly ?float $seconds, private readonly ?float $share)
    {
        $this->median = new MedianRuntime();
    }

    /** @throws UsageException */
    public static function parse(?string $value): self
    {
        if ($value === null) {
            return new self(null, null);
        }
        $isPercentage = preg_match('/^\d{1,9}(?:\.\d+)?%$/D', $value) === 1;
        $number = $isPercentage ? (float) $value : Duration::parse($value);
        if ($number === null || $number <= 0) {
            throw UsageException::option('--timeout', $value, self::ALLOWED);
        }

        return $isPercentage ? new self(null, $number / 100) : new self($number, null);
    }

    /** Returns the limit for a job that starts now, in seconds; null for none. */
    public function seconds(): ?float
    {
        if ($this->share === null) {
            return $this->seconds;
        }

        return $this->median->count < self::MIN_JOBS
            ? null
            : max(self::MIN_SECONDS, round($this->share * $this->median->seconds(), 3));
    }

    public function isAdaptive(): bool
    {
        return $this->share !== null;
    }

    /** @param float $runtime seconds that a successful job ran */
    public function observe(float $runtime): void
    {
        if ($this->share !== null) {
            $this->median->add($runtime);
        }
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Bench\Support;

/** Compares results with the expected ones: a fast pool that loses results is not fast. */
final class Tally
{
    private int $results = 0;
    private int $failed = 0;
    private int $wrong = 0;

    /** @var array<int, true> numbers of the commands with a result */
    private array $seen = [];

    private float $start;
    private ?float $first = null;
    private ?float $seconds = null;

    public function __construct(private readonly Workload $workload)
    {
        $this->start = self::now();
    }

    /** Records one command's outcome. A second outcome of the same command counts as wrong. */
    public function result(int $number, ?int $exitCode, string $stdout): void
    {
        $this->first ??= self::now() - $this->start;
        ++$this->results;
        $this->failed += $exitCode === 0 ? 0 : 1;
        $this->wrong += $stdout === $this->workload->output($number) && !isset($this->seen[$number]) ? 0 : 1;
        $this->seen[$number] = true;
    }

    /** Records the outcome of a program that mixes the output of all commands. Only sums can be checked. */
    public function allResults(int $bytes, int $failed): void
    {
        $this->results = $this->workload->count;
        $this->failed = $failed;
        $this->wrong = $bytes === $this->workload->bytes() ? 0 : 1;
    }

    /** Replaces the elapsed time by the contestant's own measurement. */
    public function setSeconds(float $seconds): void
    {
        $this->seconds = $seconds;
    }

    /** @return float seconds from the start to the first call of this method */
    public function stop(): float
    {
        return $this->seconds ??= self::now() - $this->start;
    }

    public function isRight(): bool
    {
        return $this->results === $this->workload->count && $this->failed === 0 && $this->wrong === 0;
    }

    /**
     * @return array{rate: float, seconds: float, first: float|null, results: int, failed: int, wrong: int, right: bool}
     */
    public function toArray(): array
    {
        $seconds = $this->stop();

        return [
            'rate' => $this->workload->count / $seconds,
            'seconds' => $seconds,
            'first' => $this->first,
            'results' => $this->results,
            'failed' => $this->failed,
            'wrong' => $this->wrong,
            'right' => $this->isRight(),
        ];
    }

    private static function now(): float
    {
        return hrtime(true) / 1e9;
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Bench\Aircraft;

/** What {@see CrudClients} say at their end. */
final readonly class LoadResult
{
    /** Of a cycle. */
    public const REQUESTS = 4;

    /**
     * @param int                $cycles   that were done to their end
     * @param float              $seconds  from the first request to the last answer
     * @param float              $p50      milliseconds, as all that follow
     * @param array<string, int> $errors   how many, by what they are
     */
    private function __construct(
        public int $cycles,
        public int $requests,
        public float $seconds,
        public float $p50,
        public float $p99,
        public float $p999,
        public float $longest,
        private array $errors,
    ) {}

    /**
     * @param string $output all of it
     *
     * @throws \RuntimeException when there are no figures in it
     */
    public static function of(string $output): self
    {
        $said = preg_match('/^\{"cycles":.+\}$/m', $output, $match) === 1 ? json_decode($match[0], true) : null;
        if (!\is_array($said)) {
            throw new \RuntimeException('The clients said no figures: ' . trim($output));
        }
        /** @var array{cycles: int, requests: int, seconds: float, p50: float, p99: float, p999: float, longest: float, errors: array<string, int>} $said */
        return new self(...$said);
    }

    /** @return list<string> what went wrong */
    public function problems(): array
    {
        $problems = array_map(static fn(string $kind, int $count): string => "{$count} × {$kind}", array_keys($this->errors), $this->errors);

        return $this->requests === 0 ? [...$problems, 'no request was answered'] : $problems;
    }
}

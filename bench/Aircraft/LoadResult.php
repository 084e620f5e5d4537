<?php

declare(strict_types=1);

namespace Spindle\Bench\Aircraft;

/** The figures that {@see CrudClients} print at their end. */
final readonly class LoadResult
{
    /** Requests per cycle. */
    public const REQUESTS = 4;

    /**
     * @param int                $cycles   completed cycles
     * @param float              $seconds  from the first request to the last answer
     * @param float              $p50      milliseconds, like all that follow
     * @param array<string, int> $errors   numbers of errors by kind
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
     * @param string $output the whole output
     *
     * @throws \RuntimeException when it has no figures
     */
    public static function of(string $output): self
    {
        $figures = preg_match('/^\{"cycles":.+\}$/m', $output, $match) === 1 ? json_decode($match[0], true) : null;
        if (!\is_array($figures)) {
            throw new \RuntimeException('The clients printed no result: ' . trim($output));
        }
        /**
         * @var array{
         *     cycles: int,
         *     requests: int,
         *     seconds: float,
         *     p50: float,
         *     p99: float,
         *     p999: float,
         *     longest: float,
         *     errors: array<string, int>,
         * } $figures
         */
        return new self(...$figures);
    }

    /** @return list<string> the problems */
    public function problems(): array
    {
        $problems = array_map(
            static fn(string $kind, int $count): string => "{$count} × {$kind}",
            array_keys($this->errors),
            $this->errors,
        );

        return $this->requests === 0 ? [...$problems, 'no request was answered'] : $problems;
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Bench\Http;

/** The figures that wrk prints at its end. */
final readonly class WrkResult
{
    private const ERRORS = [
        'connect' => 'connections failed',
        'read' => 'reads failed',
        'write' => 'writes failed',
        'timeout' => 'answers came too late',
        'status' => 'answers were not successful',
    ];

    /**
     * @param int           $bytes   of all answers, with their heads
     * @param float         $seconds from the first request to the last answer
     * @param float         $p50     milliseconds
     * @param float         $p99     milliseconds
     * @param array<string, int> $errors numbers of errors by kind
     */
    private function __construct(
        public int $requests,
        public int $bytes,
        public float $seconds,
        public float $p50,
        public float $p99,
        private array $errors,
    ) {}

    /**
     * @param string $output the whole output, with a line that {@see Load::script()} prints
     *
     * @throws \RuntimeException when the line is missing
     */
    public static function of(string $output): self
    {
        $line = preg_match('/^\{"requests":.+\}$/m', $output, $match) === 1 ? json_decode($match[0], true) : null;
        $figures = array_filter(\is_array($line) ? $line : [], is_int(...));
        $errors = [];
        foreach (self::ERRORS as $name => $text) {
            $errors[$text] = $figures[$name] ?? -1;
        }
        if (!isset($figures['requests'], $figures['us'], $figures['p50'], $figures['p99']) || min($errors) < 0) {
            throw new \RuntimeException('wrk printed no result: ' . trim($output));
        }

        return new self(
            $figures['requests'],
            $figures['bytes'] ?? 0,
            $figures['us'] / 1e6,
            $figures['p50'] / 1e3,
            $figures['p99'] / 1e3,
            array_diff($errors, [0]),
        );
    }

    /** @return float requests per second */
    public function rate(): float
    {
        return $this->seconds > 0.0 ? $this->requests / $this->seconds : 0.0;
    }

    /** @return list<string> the problems */
    public function problems(): array
    {
        $problems = array_map(
            static fn(string $text, int $count): string => "{$count} {$text}",
            array_keys($this->errors),
            $this->errors,
        );

        return $this->requests === 0 ? [...$problems, 'no request was answered'] : $problems;
    }
}

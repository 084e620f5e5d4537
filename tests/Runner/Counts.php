<?php

declare(strict_types=1);

namespace Spindle\Tests\Runner;

/** Numbers in PHPUnit's closing line: tests, assertions, and tests that did not pass. */
final class Counts
{
    public int $tests = 0;
    public int $assertions = 0;

    /** @var array<string, int> by PHPUnit's word, such as "Failures" or "Skipped" */
    public array $others = [];

    /** Reads the numbers from PHPUnit's output; all are zero without a closing line. */
    public static function fromOutput(string $output): self
    {
        $counts = new self();
        if (preg_match('/^OK \((\d+) tests?, (\d+) assertions?\)$/m', $output, $numbers) === 1) {
            [$counts->tests, $counts->assertions] = [(int) $numbers[1], (int) $numbers[2]];
        } elseif (preg_match('/^Tests: (\d+), Assertions: (\d+)(.*)\.$/m', $output, $numbers) === 1) {
            [$counts->tests, $counts->assertions] = [(int) $numbers[1], (int) $numbers[2]];
            preg_match_all('/, ([^:,]+): (\d+)/', $numbers[3], $others, PREG_SET_ORDER);
            foreach ($others as [, $word, $number]) {
                $counts->others[$word] = (int) $number;
            }
        }

        return $counts;
    }

    public function add(self $more): void
    {
        $this->tests += $more->tests;
        $this->assertions += $more->assertions;
        foreach ($more->others as $word => $number) {
            $this->others[$word] = ($this->others[$word] ?? 0) + $number;
        }
    }

    /** Returns the line in PHPUnit's format. */
    public function closingLine(): string
    {
        if ($this->others === []) {
            return \sprintf('OK (%d tests, %d assertions)', $this->tests, $this->assertions);
        }
        $others = array_map(
            static fn(string $word, int $number): string => ", {$word}: {$number}",
            array_keys($this->others),
            $this->others,
        );

        return \sprintf('Tests: %d, Assertions: %d%s.', $this->tests, $this->assertions, implode('', $others));
    }
}

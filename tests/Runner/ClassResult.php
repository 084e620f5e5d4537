<?php

declare(strict_types=1);

namespace Spindle\Tests\Runner;

/** Result of the tests of one class. */
final readonly class ClassResult
{
    /** Bytes of a class's failures that are printed again at the end. */
    private const MAX_FAILURES = 3_000;

    /**
     * @param string $output  PHPUnit's output
     * @param string $errors  standard error without the lines of rounds
     * @param list<string> $rounds reports of random loops
     * @param float  $seconds elapsed time
     * @param float  $cpu     CPU seconds of all its processes
     * @param string $problem why the tests did not pass; '' when they did
     */
    public function __construct(
        public TestClass $class,
        public Counts $counts,
        public string $output,
        public string $errors,
        public array $rounds,
        public float $seconds,
        public float $cpu,
        public string $problem,
    ) {}

    public function passed(): bool
    {
        return $this->problem === '';
    }

    /** Returns failed tests with their reasons, as PHPUnit prints them, for logs of which only the end is kept. */
    public function failures(): string
    {
        preg_match(
            '/^There (?:was|were) \d+ (?:error|failure)s?:.*?(?=^--$|^(?:FAILURES|ERRORS)!|\z)/ms',
            $this->output,
            $list,
        );

        return substr(trim($list[0] ?? $this->output), 0, self::MAX_FAILURES);
    }

    /** @return list<string> the reasons for skipped tests, as PHPUnit prints them */
    public function skipped(): array
    {
        if (!isset($this->counts->others['Skipped'])) {
            return [];
        }
        preg_match_all('/^\d+\) (Spindle\\\\Tests\\\\\S+.*)\n(.+)$/m', $this->output, $tests, PREG_SET_ORDER);

        return array_map(static fn(array $test): string => "{$test[2]} ({$test[1]})", $tests);
    }
}

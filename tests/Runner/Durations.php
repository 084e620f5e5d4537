<?php

declare(strict_types=1);

namespace Spindle\Tests\Runner;

/** Duration of each class in its last run, kept in a file between runs. */
final class Durations
{
    private const FILE = '.cache/tests/durations.json';

    /** @param array<string, float> $seconds by class name */
    private function __construct(private array $seconds) {}

    public static function load(): self
    {
        $known = json_decode((string) @file_get_contents(self::FILE), true);

        $seconds = [];
        foreach (\is_array($known) ? $known : [] as $class => $duration) {
            if (\is_float($duration)) {
                $seconds[(string) $class] = $duration;
            }
        }

        return new self($seconds);
    }

    /**
     * Sorts by duration, the longest first. Classes that have not run yet come before all others, sorted by file size.
     *
     * @param list<TestClass> $classes
     *
     * @return list<TestClass>
     */
    public function longestFirst(array $classes): array
    {
        usort($classes, fn(TestClass $a, TestClass $b): int => $this->weight($b) <=> $this->weight($a));

        return $classes;
    }

    /** @return array{float, int} */
    private function weight(TestClass $class): array
    {
        return [$this->seconds[$class->name()] ?? \INF, (int) @filesize($class->file)];
    }

    /** @param list<ClassResult> $results */
    public function save(array $results): void
    {
        foreach ($results as $result) {
            $this->seconds[$result->class->name()] = round($result->seconds, 3);
        }
        if (!is_dir(\dirname(self::FILE))) {
            mkdir(\dirname(self::FILE), recursive: true);
        }
        $temporary = self::FILE . '.' . getmypid();
        $flags = \JSON_PRETTY_PRINT | \JSON_PRESERVE_ZERO_FRACTION | \JSON_THROW_ON_ERROR;
        file_put_contents($temporary, json_encode($this->seconds, $flags));
        rename($temporary, self::FILE);
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Bench\Support;

/** The two tables of TaskRunner.php's benchmark. */
final class TaskRunnerTables
{
    private const TABLES = [
        'Raw forking speed (`-s0`), tasks per second' => ['-s0'],
        'High concurrency (`-p16`), tasks per second' => ['-p16'],
    ];

    private const MEMORY = [0, 10, 50, 100, 500];

    public static function print(int $count, int $rounds): void
    {
        Environment::print();
        foreach (self::TABLES as $title => $options) {
            $figures = array_map(
                static fn(int $memory): array => self::measure([...$options, "-n{$count}", "-m{$memory}"], $rounds),
                self::MEMORY,
            );
            echo "\n{$title}\n\n", Table::markdown(['Memory (MB)', ...array_keys($figures[0])], array_map(
                static fn(int $memory, array $row): array => [
                    (string) $memory,
                    ...array_values(array_map(static fn(float $rate): string => number_format($rate, 1), $row)),
                ],
                self::MEMORY,
                $figures,
            ));
        }
    }

    /**
     * @param list<string> $options
     *
     * @return array<string, float> the median rate by test
     */
    private static function measure(array $options, int $rounds): array
    {
        $rates = [];
        for ($round = 1; $round <= $rounds; ++$round) {
            Rounds::say("round {$round}/{$rounds}: " . implode(' ', $options));
            [$status, $output] = Program::run([\PHP_BINARY, \dirname(__DIR__) . '/task-runner.php', ...$options]);
            if ($status !== 0) {
                throw new \RuntimeException("The benchmark ended with {$status}: {$output}");
            }
            preg_match_all('/^test: (\S+)(?:\n\t.*)*?\n\tthroughput: (\S+) TPS$/m', $output, $matches, \PREG_SET_ORDER);
            foreach ($matches as [, $test, $rate]) {
                $rates[$test][] = (float) $rate;
            }
        }
        Rounds::say('');

        return array_map(static fn(array $values): float => Statistics::of($values)->median, $rates);
    }
}

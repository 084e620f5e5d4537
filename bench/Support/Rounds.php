<?php

declare(strict_types=1);

namespace Spindle\Bench\Support;

/**
 * Measures series in turn, there and back again (A B C, C B A), so that a slow minute of the machine meets all of them,
 * and none always comes after the same other one.
 */
final class Rounds
{
    /**
     * @param list<Series> $series
     *
     * @return list<Series> the same
     */
    public static function run(array $series, int $rounds): array
    {
        for ($round = 1; $round <= $rounds; ++$round) {
            foreach (self::order($series, $round) as $one) {
                self::say("round {$round}/{$rounds}: {$one->name()}");
                $one->measure($round);
            }
        }
        self::say('');

        return $series;
    }

    /**
     * Returns the series in the order of a round, counted from 1.
     *
     * @param list<Series> $series
     *
     * @return list<Series>
     */
    public static function order(array $series, int $round): array
    {
        return $round % 2 === 1 ? $series : array_reverse($series);
    }

    /** Progress, on standard error: one line that changes on a terminal, nothing elsewhere. */
    public static function say(string $text): void
    {
        if (stream_isatty(\STDERR)) {
            fwrite(\STDERR, "\r\e[K{$text}");
        } elseif ($text !== '') {
            fwrite(\STDERR, "{$text}\n");
        }
    }
}

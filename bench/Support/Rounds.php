<?php

declare(strict_types=1);

namespace Spindle\Bench\Support;

/**
 * Measures series in alternating order (A B C, C B A). A slow minute of the machine thus affects all of them, and none
 * always follows the same other one.
 */
final class Rounds
{
    /**
     * @param list<Series> $series
     *
     * @return list<Series> the same series
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

    /** Shows progress on standard error: one changing line on a terminal, nothing elsewhere. */
    public static function say(string $text): void
    {
        if (stream_isatty(\STDERR)) {
            fwrite(\STDERR, "\r\e[K{$text}");
        } elseif ($text !== '') {
            fwrite(\STDERR, "{$text}\n");
        }
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Bench\Aircraft;

use Revolt\EventLoop;
use Spindle\Bench\Http\PrivateDirectory;

/**
 * Measures how long a server's event loop is blocked.
 *
 * In the server's process, a timer of one millisecond writes each gap between two of its calls into a file, with the
 * time when the gap ended by the machine's clock.
 */
final readonly class LoopGaps
{
    public const VARIABLE = 'SPINDLE_BENCH_GAPS';

    private const INTERVAL = 0.001;

    /** Shortest gap that is recorded, in nanoseconds. */
    private const MIN_GAP_NANOSECONDS = 2_000_000;

    public static function file(PrivateDirectory $directory): string
    {
        return "{$directory->path}/gaps";
    }

    /** Records gaps. Called in the server's process. */
    public static function record(string $file): void
    {
        $output = fopen($file, 'a');
        \assert($output !== false);
        $last = hrtime(true);
        EventLoop::unreference(EventLoop::repeat(self::INTERVAL, static function () use ($output, &$last): void {
            $now = hrtime(true);
            if ($now - $last >= self::MIN_GAP_NANOSECONDS) {
                fwrite($output, "{$now} " . ($now - $last) . "\n");
            }
            $last = $now;
        }));
    }

    /** @return float seconds of the longest gap that ended between these two times of hrtime() */
    public static function longest(PrivateDirectory $directory, int $from, int $to): float
    {
        $longest = self::INTERVAL;
        foreach ((array) @file(self::file($directory)) as $line) {
            [$at, $gap] = explode(' ', (string) $line) + [1 => '0'];
            if ((int) $at >= $from && (int) $at - (int) $gap <= $to) {
                $longest = max($longest, (int) $gap / 1e9);
            }
        }

        return $longest;
    }
}

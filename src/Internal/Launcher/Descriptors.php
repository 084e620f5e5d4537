<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher;

use Spindle\Internal\Launcher\Process\Files;

/** The descriptors of this process that a child would inherit, and how many it may have. */
final class Descriptors
{
    /** The first ones are given to the launcher on purpose. */
    private const GIVEN = 3;

    /** So many stay free, for the launcher's pipes and whatever PHP opens meanwhile. */
    private const SPARE = 16;

    /**
     * Those that the launcher gets /dev/null for: sockets, locks and files of this process are no business of it or of
     * its commands. Each takes one more descriptor while the launcher is started; where there are too few for all,
     * sockets come first.
     *
     * @return list<int>
     */
    public static function toReplace(): array
    {
        $limit = self::limit();
        $open = 0;
        $sockets = $others = [];
        foreach (Files::in('/proc/self/fd') as $entry) {
            $target = @readlink("/proc/self/fd/{$entry}");
            if ($target === false) {
                continue; // the folder's own, closed by now
            }
            ++$open;
            $descriptor = (int) $entry;
            if ($descriptor <= self::GIVEN || $descriptor >= $limit || $target === '/dev/null' || self::closesOnExec($descriptor)) {
                continue;
            }
            if (str_starts_with($target, 'socket:')) {
                $sockets[] = $descriptor;
            } else {
                $others[] = $descriptor;
            }
        }

        return \array_slice([...$sockets, ...$others], 0, max(0, $limit - $open - self::SPARE));
    }

    private static function limit(): int
    {
        return preg_match('/^Max open files\s+(\d+)/m', (string) @file_get_contents('/proc/self/limits'), $match) === 1
            ? (int) $match[1]
            : \PHP_INT_MAX;
    }

    private static function closesOnExec(int $descriptor): bool
    {
        return preg_match('/^flags:\s+([0-7]+)/m', (string) @file_get_contents("/proc/self/fdinfo/{$descriptor}"), $match) === 1
            && (octdec($match[1]) & 0o2000000) !== 0;
    }
}

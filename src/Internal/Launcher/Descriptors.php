<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher;

use Spindle\Internal\Launcher\Process\Files;
use Spindle\Internal\Warnings;

/** Finds the descriptors of this process that a child process, such as a launcher, must not inherit. */
final class Descriptors
{
    /** Highest descriptor that the launcher inherits on purpose. */
    private const LAST_GIVEN_DESCRIPTOR = 3;

    /** Number of descriptors that stay free for the pipes to the launcher and for other files that PHP opens. */
    private const SPARE_DESCRIPTORS = 16;

    /**
     * Returns the descriptors that are replaced by /dev/null in the child. During the start, this process opens one
     * more descriptor for each of them. If the descriptor limit is too low for all replacements, sockets are replaced
     * first, because a copy of a socket keeps its connection open. The child inherits the remaining descriptors.
     *
     * @return list<int>
     */
    public static function toReplace(): array
    {
        $limit = self::limit();
        $open = 0;
        $sockets = $others = [];
        foreach (Files::in('/proc/self/fd') as $entry) {
            $target = Warnings::suppressed(static fn(): string|false => readlink("/proc/self/fd/{$entry}"));
            if ($target === false) {
                continue; // the descriptor of the listing itself, which is closed by now
            }
            ++$open;
            $descriptor = (int) $entry;
            if (
                $descriptor <= self::LAST_GIVEN_DESCRIPTOR
                || $descriptor >= $limit
                || $target === '/dev/null'
                || self::closesOnExec($descriptor)
            ) {
                continue;
            }
            str_starts_with($target, 'socket:') ? $sockets[] = $descriptor : $others[] = $descriptor;
        }

        return \array_slice([...$sockets, ...$others], 0, max(0, $limit - $open - self::SPARE_DESCRIPTORS));
    }

    private static function limit(): int
    {
        return preg_match('/^Max open files\s+(\d+)/m', (string) Files::read('/proc/self/limits'), $match) === 1
            ? (int) $match[1]
            : \PHP_INT_MAX;
    }

    private static function closesOnExec(int $descriptor): bool
    {
        return preg_match(
            '/^flags:\s+([0-7]+)/m',
            (string) Files::read("/proc/self/fdinfo/{$descriptor}"),
            $match,
        ) === 1
            && (octdec($match[1]) & 0o2000000) !== 0;
    }
}

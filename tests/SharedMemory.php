<?php

declare(strict_types=1);

namespace Spindle\Tests;

/** Segments of System V shared memory, which outlive the processes that use them. */
final class SharedMemory
{
    /** @return array<int, string> segments of this user, by id, except those that end with their last process */
    public static function segments(): array
    {
        return array_map(
            static fn(array $fields): string
                => "shared memory {$fields[1]} of {$fields[3]} bytes, made by {$fields[4]}",
            self::ofThisUser(),
        );
    }

    /** @return array<int, int> ids of the processes that created the segments, by id of the segment */
    public static function creators(): array
    {
        return array_map(static fn(array $fields): int => $fields[4], self::ofThisUser());
    }

    /** @return array<int, array<int, int>> fields of each segment, by id */
    private static function ofThisUser(): array
    {
        $segments = [];
        $user = \function_exists('posix_geteuid') ? posix_geteuid() : getmyuid();
        foreach (\array_slice(Text::lines('/proc/sysvipc/shm'), 1) as $line) {
            // key, id, mode, size, pid of the creator, pid of the last user, attached, uid, gid, uid of the creator
            $fields = Text::numbers($line);
            if (($fields[9] ?? null) === $user && $fields[0] !== 0) {
                $segments[$fields[1]] = $fields;
            }
        }

        return $segments;
    }
}

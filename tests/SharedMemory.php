<?php

declare(strict_types=1);

namespace Spindle\Tests;

/** System V shared memory, which outlives the processes that use it. */
final class SharedMemory
{
    /** @return array<int, string> the segments that this user has made, by id, but for those that go with the last process that uses them */
    public static function segments(): array
    {
        $segments = [];
        $user = \function_exists('posix_geteuid') ? posix_geteuid() : getmyuid();
        foreach (\array_slice(Text::lines('/proc/sysvipc/shm'), 1) as $line) {
            // key, id, mode, size, pid of the creator, pid of the last user, attached, uid, gid, uid of the creator
            $fields = Text::numbers($line);
            if (($fields[9] ?? null) === $user && $fields[0] !== 0) {
                $segments[$fields[1]] = "shared memory {$fields[1]} of {$fields[3]} bytes, made by {$fields[4]}";
            }
        }

        return $segments;
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Aircraft;

use Spindle\Tests\Http\RawClient;
use Spindle\Tests\Processes;
use Spindle\Tests\Text;

/** Reads facts about server processes from /proc. */
final class ServerSide
{
    /**
     * Returns the process that has accepted the client's connection, or null while none has.
     *
     * @param list<int> $processes
     *
     * @see https://www.kernel.org/doc/html/latest/networking/proc_net_tcp.html
     */
    public static function of(RawClient $client, array $processes): ?int
    {
        $port = static fn(string|false $address): string
            => \sprintf('%04X', (int) substr((string) strrchr((string) $address, ':'), 1));
        $local = $port(stream_socket_get_name($client->stream(), true));
        $remote = $port(stream_socket_get_name($client->stream(), false));
        if (preg_match(
            "~^ *\\d+: [0-9A-F]+:{$local} [0-9A-F]+:{$remote} \\S+ \\S+ \\S+ \\S+ +\\d+ +\\d+ (\\d+) ~m",
            (string) file_get_contents('/proc/net/tcp'),
            $match,
        ) !== 1) {
            return null;
        }
        foreach ($processes as $pid) {
            foreach (Text::names("/proc/{$pid}/fd") as $descriptor) {
                if (@readlink("/proc/{$pid}/fd/{$descriptor}") === "socket:[{$match[1]}]") {
                    return $pid;
                }
            }
        }

        return null;
    }

    /** @return int resident memory in bytes: the current value, or with `$most` the peak */
    public static function memory(int $pid, bool $most = false): int
    {
        preg_match(
            '/^' . ($most ? 'VmHWM' : 'VmRSS') . ':\s+(\d+) kB$/m',
            (string) file_get_contents("/proc/{$pid}/status"),
            $match,
        );

        return (int) ($match[1] ?? 0) * 1024;
    }

    /**
     * Finds workers among the descendants of a process by their positive niceness, which the application sets.
     *
     * @return array<int, int> CPU ticks used so far by workers that compute now, by process id
     */
    public static function computing(int $pid): array
    {
        $found = [];
        foreach (array_keys(Processes::childrenOf($pid)) as $child) {
            $fields = explode(' ', (string) strrchr((string) @file_get_contents("/proc/{$child}/stat"), ')'));
            if (($fields[1] ?? '') === 'R' && (int) ($fields[17] ?? 0) > 0) {
                $found[$child] = (int) ($fields[12] ?? 0) + (int) ($fields[13] ?? 0);
            }
            $found += self::computing($child);
        }

        return $found;
    }
}

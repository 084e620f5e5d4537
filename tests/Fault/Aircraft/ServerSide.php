<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Aircraft;

use Spindle\Tests\Http\RawClient;
use Spindle\Tests\Processes;
use Spindle\Tests\Text;

/** What is to be known of the processes that serve, from outside. */
final class ServerSide
{
    private function __construct() {}

    /**
     * Which of the processes has accepted a connection; null as long as none has.
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

    /** @return int bytes of memory: what it has, or the most that it ever had */
    public static function memory(int $pid, bool $most = false): int
    {
        preg_match(
            '/^' . ($most ? 'VmHWM' : 'VmRSS') . ':\s+(\d+) kB$/m',
            (string) file_get_contents("/proc/{$pid}/status"),
            $match,
        );

        return (int) ($match[1] ?? 0) * 1024;
    }

    /** @return array<int, int> ticks of CPU used so far by each process of a pool of workers that computes just now */
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

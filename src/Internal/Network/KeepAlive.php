<?php

declare(strict_types=1);

namespace Spindle\Internal\Network;

use Spindle\Internal\Warnings;

/** Enables TCP keepalive, so that the kernel notices a dead peer on a silent connection. Needs ext-sockets. */
final class KeepAlive
{
    private const IDLE_SECONDS = 60;

    /**
     * Errors are ignored.
     *
     * @param resource $stream   a TCP connection, or a listening socket, whose connections inherit the options
     * @param int      $interval seconds between two probes, which begin after IDLE_SECONDS without a byte
     * @param int      $probes   number of unanswered probes after which the connection is lost
     */
    public static function set($stream, int $interval = 10, int $probes = 6): void
    {
        if (!\extension_loaded('sockets')) {
            return;
        }
        [$socket] = Warnings::of(static fn() => socket_import_stream($stream));
        if ($socket === false) {
            return;
        }
        $options = [[\SOL_SOCKET, \SO_KEEPALIVE, 1]];
        foreach ([
            'TCP_KEEPIDLE' => self::IDLE_SECONDS,
            'TCP_KEEPINTVL' => $interval,
            'TCP_KEEPCNT' => $probes,
        ] as $name => $value) {
            $option = \defined($name) ? \constant($name) : null;
            if (\is_int($option)) {
                $options[] = [\SOL_TCP, $option, $value];
            }
        }
        foreach ($options as [$level, $option, $value]) {
            Warnings::of(static fn() => socket_set_option($socket, $level, $option, $value));
        }
    }
}

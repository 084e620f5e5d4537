<?php

declare(strict_types=1);

namespace Spindle\Internal\Network;

use Spindle\Internal\Warnings;

/** Enables TCP keepalive, so that the kernel notices a dead peer on a silent connection. Needs ext-sockets. */
final class KeepAlive
{
    /** TCP_KEEPIDLE: seconds without a byte until the first probe. */
    private const IDLE_SECONDS = 60;

    /** TCP_KEEPINTVL: seconds between two probes. */
    private const INTERVAL_SECONDS = 10;

    /** TCP_KEEPCNT: number of unanswered probes after which the connection is lost. */
    private const MAX_PROBES = 6;

    /** @param resource $stream a TCP connection; errors are ignored */
    public static function set($stream): void
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
            'TCP_KEEPINTVL' => self::INTERVAL_SECONDS,
            'TCP_KEEPCNT' => self::MAX_PROBES,
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

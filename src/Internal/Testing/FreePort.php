<?php

declare(strict_types=1);

namespace Spindle\Internal\Testing;

use Spindle\Internal\Warnings;

final class FreePort
{
    /** Linux uses no port of this range for outgoing connections by default. So a free port probably stays free. */
    private const PORT_RANGE = [10_240, 32_000];

    private const MAX_ATTEMPTS = 20;

    /**
     * Returns a TCP port that is free on 127.0.0.1. Another process may use the port before the caller does.
     *
     * @throws ServerException when no free port was found
     */
    public static function find(): int
    {
        for ($i = 0; $i < self::MAX_ATTEMPTS; ++$i) {
            $port = random_int(...self::PORT_RANGE);
            $socket = Warnings::suppressed(static fn(): mixed => stream_socket_server("tcp://127.0.0.1:{$port}"));
            if ($socket !== false) {
                fclose($socket);

                return $port;
            }
        }

        throw ServerException::cannotDo('No free port was found on 127.0.0.1', error_get_last()['message'] ?? '');
    }

    /**
     * Starts a server on a free port. If another process takes the port before the server does, tries other ports.
     *
     * @template T
     *
     * @param \Closure(int): T $start starts the server on a port
     *
     * @return T
     *
     * @throws ServerException
     */
    public static function startOnFreePort(\Closure $start): mixed
    {
        for ($attempt = 1;; ++$attempt) {
            try {
                return $start(self::find());
            } catch (ServerException $failure) {
                if ($attempt === self::MAX_ATTEMPTS || !str_contains($failure->output, 'Address already in use')) {
                    throw $failure;
                }
            }
        }
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Internal\Testing;

/** A port on 127.0.0.1 that nobody listens on. */
final class FreePort
{
    /** Where the system takes no ports from for outgoing connections, on Linux: one that is free stays so. */
    private const PORTS = [10_240, 32_000];

    private const ATTEMPTS = 20;

    /**
     * Another process may take it meanwhile.
     *
     * @throws ServerException
     */
    public static function find(): int
    {
        for ($i = 0; $i < self::ATTEMPTS; ++$i) {
            $port = random_int(...self::PORTS);
            $socket = @stream_socket_server("tcp://127.0.0.1:{$port}");
            if ($socket !== false) {
                fclose($socket);

                return $port;
            }
        }

        throw ServerException::cannotDo('No port on 127.0.0.1 can be listened on', error_get_last()['message'] ?? '');
    }

    /**
     * Starts a server, again where another process has taken its port meanwhile.
     *
     * @template T
     *
     * @param \Closure(int): T $start
     *
     * @return T
     *
     * @throws ServerException
     */
    public static function take(\Closure $start): mixed
    {
        for ($attempt = 1;; ++$attempt) {
            try {
                return $start(self::find());
            } catch (ServerException $failure) {
                if ($attempt === self::ATTEMPTS || !str_contains($failure->output, 'Address already in use')) {
                    throw $failure;
                }
            }
        }
    }
}

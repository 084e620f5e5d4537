<?php

declare(strict_types=1);

namespace Spindle\Remote\Testing;

/** What a temporary Redis can be told beyond its settings. The defaults need no thought. */
final class TemporaryRedisOptions
{
    /**
     * @param string|null $binary      the program, by its path or by a name to look for, such as valkey-server; null takes
     *                                 redis-server, or valkey-server where there is no other
     * @param string|null $certificate the file of the server's certificate, in PEM; it is copied. There is a port for TLS with it
     * @param string|null $key         the file of its private key, in PEM, without a passphrase; it is copied
     * @param float       $timeout     seconds that the server is given to start, each time, and to answer
     *
     * @throws \ValueError when only one of certificate and key is given, or the timeout is not positive
     */
    public function __construct(
        public readonly ?string $binary = null,
        public readonly ?string $certificate = null,
        public readonly ?string $key = null,
        public readonly float $timeout = 20.0,
    ) {
        if (($certificate === null) !== ($key === null)) {
            throw new \ValueError('A certificate and its key are given together or not at all');
        }
        if (!($timeout > 0)) {
            throw new \ValueError("The timeout must be more than 0 seconds, not {$timeout}");
        }
    }
}

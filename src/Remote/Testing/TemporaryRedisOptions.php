<?php

declare(strict_types=1);

namespace Spindle\Remote\Testing;

/** Options of a temporary Redis besides its settings. The defaults suit most tests. */
final class TemporaryRedisOptions
{
    /**
     * @param string|null $binary      the program's path or name; null for redis-server, or else valkey-server
     * @param string|null $certificate the file of the server's certificate, in PEM, which is copied; opens a TLS port
     * @param string|null $key         the file of its private key, in PEM, without a passphrase, which is copied
     * @param float       $timeout     seconds that the server has to start, each time, and to answer
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

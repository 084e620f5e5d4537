<?php

declare(strict_types=1);

namespace Spindle\Remote\Testing;

use Spindle\Internal\NumberRange;

/** Options of a temporary Redis besides the settings in redis.conf. The defaults suit most tests. */
final class TemporaryRedisOptions
{
    /**
     * @param string|null $binary      path or name of the program; null to search for redis-server, then valkey-server
     * @param string|null $certificate path of the server's certificate in PEM; the server then has a TLS port
     * @param string|null $key         path of the certificate's private key in PEM, without a passphrase
     * @param float       $timeout     seconds that the server has for each start, and for each answer
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
            throw new \ValueError('A certificate needs its private key, and a private key needs its certificate');
        }
        if (!($timeout > 0)) {
            throw new \ValueError('The timeout must be more than 0 seconds, not ' . NumberRange::text($timeout));
        }
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Postgres\Testing;

use Spindle\Internal\NumberRange;

/** Options of {@see TemporaryPostgres}, except for the settings of postgresql.conf. The defaults suit most tests. */
final class TemporaryPostgresOptions
{
    /**
     * @param list<string> $hba first lines of pg_hba.conf. The lines after them trust all users on the
     *     Unix socket, and require the password (scram-sha-256) on 127.0.0.1
     * @param string|null $certificate PEM file of the server's certificate, which enables TLS; the file is copied
     * @param string|null $key PEM file of the server's private key, without a passphrase; the file is copied
     * @param string|null $caFile PEM file of the authorities for client certificates; the file is copied
     * @param string $user superuser's name: 1 to 63 bytes without quotes, backslash, dollar sign and control characters
     * @param int|null $version required major version, such as 17; null for any
     * @param string|null $binaries directory that holds initdb and postgres; null to search PATH, and then the usual
     *     directories, the newest version first
     * @param list<string> $initdb further arguments for initdb, such as '--data-checksums'
     * @param float $timeout maximum seconds to wait for each start of the server
     *
     * @throws \ValueError when only one of certificate and key is given, or the user or timeout is not allowed
     */
    public function __construct(
        public readonly array $hba = [],
        public readonly ?string $certificate = null,
        public readonly ?string $key = null,
        public readonly ?string $caFile = null,
        public readonly string $user = 'postgres',
        public readonly ?int $version = null,
        public readonly ?string $binaries = null,
        public readonly array $initdb = [],
        public readonly float $timeout = 60.0,
    ) {
        if (($certificate === null) !== ($key === null)) {
            throw new \ValueError('The options certificate and key must be set together');
        }
        if (preg_match('~^(?!pg_|(?:public|none)$)[^\'"\\\\$\x00-\x1F\x7F]{1,63}$~D', $user) !== 1) {
            // PostgreSQL reserves pg_…, public and none. initdb can't handle longer names or the excluded characters.
            throw new \ValueError("The superuser of a temporary server can not be named \"{$user}\"");
        }
        if (!($timeout > 0)) {
            throw new \ValueError('The timeout must be more than 0 seconds, not ' . NumberRange::text($timeout));
        }
    }
}

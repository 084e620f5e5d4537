<?php

declare(strict_types=1);

namespace Spindle\Postgres\Testing;

/** What a temporary cluster can be told beyond its settings. The defaults need no thought. */
final class TemporaryClusterOptions
{
    /**
     * @param list<string> $hba         lines of pg_hba.conf that stand before the cluster's own, which trust everybody
     *                                  on the Unix socket and ask for the password (scram-sha-256) on 127.0.0.1
     * @param string|null  $certificate the file of the server's certificate, in PEM; it is copied. TLS is on with it
     * @param string|null  $key         the file of its private key, in PEM, without a passphrase; it is copied
     * @param string|null  $authority   the file of the certificates that vouch for clients' ones, in PEM; it is copied
     * @param string       $user        the superuser's name: at most 63 bytes, of which none is a quote, a backslash, a dollar sign
     *                                  or a control character
     * @param int|null     $version     the major version that it has to be, such as 17; null takes the newest
     * @param string|null  $binaries    the directory that holds initdb and postgres; null finds one
     * @param list<string> $initdb      further arguments for initdb, such as '--data-checksums'
     * @param float        $timeout     seconds that the server is given to start, each time
     *
     * @throws \ValueError when only one of certificate and key is given, the user can't be called so, or the timeout is not positive
     */
    public function __construct(
        public readonly array $hba = [],
        public readonly ?string $certificate = null,
        public readonly ?string $key = null,
        public readonly ?string $authority = null,
        public readonly string $user = 'postgres',
        public readonly ?int $version = null,
        public readonly ?string $binaries = null,
        public readonly array $initdb = [],
        public readonly float $timeout = 60.0,
    ) {
        if (($certificate === null) !== ($key === null)) {
            throw new \ValueError('A certificate and its key are given together or not at all');
        }
        if (preg_match('~^(?!pg_|(?:public|none)$)[^\'"\\\\$\x00-\x1F\x7F]{1,63}$~D', $user) !== 1) {
            // Some PostgreSQL itself has no use for, others confuse initdb.
            throw new \ValueError("The superuser of a temporary cluster can't be called \"{$user}\"");
        }
        if (!($timeout > 0)) {
            throw new \ValueError("The timeout must be more than 0 seconds, not {$timeout}");
        }
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/**
 * Whether a connection is encrypted, and how the server's certificate is checked. A Unix socket is never encrypted.
 *
 * @see https://www.postgresql.org/docs/current/libpq-ssl.html#LIBPQ-SSL-PROTECTION
 */
enum TlsMode: string
{
    case Disable = 'disable';

    /**
     * Encrypted if the server supports encryption. The certificate is not checked. An attacker can disable the
     * encryption by changing the traffic. libpq's mode "allow" is treated as this mode.
     */
    case Prefer = 'prefer';

    /**
     * Encrypted. If {@see PostgresOptions::$tlsCaFile} is set, this mode is the same as {@see VerifyCa}. Otherwise, the
     * certificate is not checked: the mode protects from eavesdropping, but not from a false server.
     */
    case Require = 'require';

    /** Encrypted, and a trusted authority has signed the server's certificate. */
    case VerifyCa = 'verify-ca';

    /** Like {@see VerifyCa}, and the certificate is valid for the requested host name. */
    case VerifyFull = 'verify-full';

    public function verifies(): bool
    {
        return $this === self::VerifyCa || $this === self::VerifyFull;
    }
}

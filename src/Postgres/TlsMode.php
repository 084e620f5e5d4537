<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/**
 * Whether a connection is encrypted, and how far the server's certificate is checked. A Unix socket is never encrypted.
 *
 * @see https://www.postgresql.org/docs/current/libpq-ssl.html#LIBPQ-SSL-PROTECTION
 */
enum TlsMode: string
{
    /** Never encrypted. */
    case Disable = 'disable';

    /**
     * Encrypted when the server offers it. The certificate is not checked.
     *
     * An attacker can switch encryption off by changing the traffic. libpq's "allow" is treated as this mode.
     */
    case Prefer = 'prefer';

    /** Encrypted, but the certificate is not checked. Protects from eavesdroppers, not from impostors. */
    case Require = 'require';

    /** Encrypted, and a trusted authority has signed the server's certificate. */
    case VerifyCa = 'verify-ca';

    /** Encrypted, and the certificate is also valid for the requested host name. */
    case VerifyFull = 'verify-full';

    public function verifies(): bool
    {
        return $this === self::VerifyCa || $this === self::VerifyFull;
    }
}

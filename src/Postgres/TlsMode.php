<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/**
 * How far a connection is encrypted, and what of the server's certificate is checked. A Unix socket is never encrypted.
 *
 * @see https://www.postgresql.org/docs/current/libpq-ssl.html#LIBPQ-SSL-PROTECTION
 */
enum TlsMode: string
{
    /** Never encrypted. */
    case Disable = 'disable';

    /**
     * Encrypted when the server offers it, and the certificate is not looked at. This protects from nobody who can change
     * what is sent: he only needs to say that there is no encryption. libpq's "allow" is taken for this one.
     */
    case Prefer = 'prefer';

    /** Encrypted, and the certificate is not looked at: protects from who listens, not from who takes the server's place. */
    case Require = 'require';

    /** Encrypted, by any server whose certificate a trusted authority has signed. */
    case VerifyCa = 'verify-ca';

    /** Encrypted, by the very host that was asked for. */
    case VerifyFull = 'verify-full';

    public function verifies(): bool
    {
        return $this === self::VerifyCa || $this === self::VerifyFull;
    }
}

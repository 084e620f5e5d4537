<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** Whether a SCRAM login also proves that the TLS connection ends at the server, not at a man in the middle. */
enum ChannelBinding: string
{
    case Disable = 'disable';

    /**
     * Channel binding is used if the connection is encrypted, the server supports it, and the signature of the server's
     * certificate is neither Ed25519 nor RSA-PSS.
     */
    case Prefer = 'prefer';

    case Require = 'require';
}

<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** Whether a SCRAM login also proves that the TLS connection ends at the server, not at a man in the middle. */
enum ChannelBinding: string
{
    case Disable = 'disable';

    /**
     * Channel binding is used if the connection is encrypted, the server supports channel binding, and the signature
     * algorithm of the server's certificate names the hash function for the proof. Ed25519 and RSA-PSS name none.
     */
    case Prefer = 'prefer';

    case Require = 'require';
}

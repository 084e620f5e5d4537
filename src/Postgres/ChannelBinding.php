<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** Whether a SCRAM login also proves that the TLS connection ends at the server, not at a man in the middle. */
enum ChannelBinding: string
{
    case Disable = 'disable';

    /**
     * Uses channel binding if the connection is encrypted and the server supports channel binding. The signature
     * algorithm of the server's certificate must also name a hash function. Ed25519 and RSA-PSS name none.
     */
    case Prefer = 'prefer';

    case Require = 'require';
}

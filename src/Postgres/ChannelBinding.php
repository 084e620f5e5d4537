<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** Whether SCRAM also proves that both ends see one and the same TLS connection, with nobody between them. */
enum ChannelBinding: string
{
    case Disable = 'disable';

    /** When the connection is encrypted and the server can. */
    case Prefer = 'prefer';

    case Require = 'require';
}

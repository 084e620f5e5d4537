<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** Whether SCRAM also proves that both ends share one TLS connection, without a man in the middle. */
enum ChannelBinding: string
{
    case Disable = 'disable';

    /** Used when the connection is encrypted and the server supports it. */
    case Prefer = 'prefer';

    case Require = 'require';
}

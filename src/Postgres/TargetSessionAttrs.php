<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** Required kind of session. Hosts with another kind are skipped. The values are libpq's for target_session_attrs. */
enum TargetSessionAttrs: string
{
    case Any = 'any';

    /** A session whose transactions can write by default. */
    case ReadWrite = 'read-write';

    /** A session on a standby, or one whose transactions are read-only by default. */
    case ReadOnly = 'read-only';

    case Primary = 'primary';
    case Standby = 'standby';

    /** A standby, or any server when no standby is reachable. */
    case PreferStandby = 'prefer-standby';
}

<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** Which of several hosts will do. The values are those of libpq's target_session_attrs. */
enum TargetSession: string
{
    case Any = 'any';

    /** Where transactions may write unless they say otherwise. */
    case ReadWrite = 'read-write';

    /** Where they may not. */
    case ReadOnly = 'read-only';

    case Primary = 'primary';
    case Standby = 'standby';

    /** A standby, and where none can be reached, any. */
    case PreferStandby = 'prefer-standby';
}

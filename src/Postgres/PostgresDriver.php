<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** What speaks to the server. Both give the same results. */
enum PostgresDriver
{
    /** The wire protocol in plain PHP: needs no extension, and sends queries one behind the other without waiting. */
    case Native;

    /** ext-pgsql, which is libpq: one query at a time on each connection. */
    case ExtPgsql;
}

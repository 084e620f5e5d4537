<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** Implementations of PostgreSQL's protocol. Both return the same results. */
enum PostgresDriver
{
    /** The wire protocol in plain PHP. Needs no extension, and pipelines queries. */
    case Native;

    /** ext-pgsql with libpq. Runs one query at a time on each connection. */
    case ExtPgsql;
}

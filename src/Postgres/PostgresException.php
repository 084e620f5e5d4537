<?php

declare(strict_types=1);

namespace Spindle\Postgres;

use Spindle\SpindleException;

/** Implemented by all runtime exceptions of the PostgreSQL client, except for cancellation. */
interface PostgresException extends SpindleException {}

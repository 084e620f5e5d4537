<?php

declare(strict_types=1);

namespace Spindle\Postgres;

use Spindle\SpindleException;

/** Implemented by all exception classes of the PostgreSQL client. Cancellations throw a CancelledException instead. */
interface PostgresException extends SpindleException {}

<?php

declare(strict_types=1);

namespace Spindle\Postgres;

use Spindle\SpindleException;

/** Everything that the PostgreSQL client throws for a runtime condition, a cancellation aside. */
interface PostgresException extends SpindleException {}

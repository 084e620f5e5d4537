<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Lifecycle;

use Spindle\Postgres\PostgresDriver;
use Spindle\Postgres\PostgresPool;

final class PgsqlPostgresPoolLifecycleTest extends PostgresLifecycleContract
{
    protected function driver(): PostgresDriver
    {
        return PostgresDriver::ExtPgsql;
    }

    protected function create(): PostgresPool
    {
        return new PostgresPool($this->options(), 2);
    }
}

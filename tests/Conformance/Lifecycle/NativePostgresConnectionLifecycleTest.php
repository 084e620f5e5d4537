<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Lifecycle;

use Spindle\Postgres\PostgresConnection;
use Spindle\Postgres\PostgresDriver;

final class NativePostgresConnectionLifecycleTest extends PostgresLifecycleContract
{
    protected function driver(): PostgresDriver
    {
        return PostgresDriver::Native;
    }

    protected function create(): PostgresConnection
    {
        return PostgresConnection::connect($this->options());
    }
}

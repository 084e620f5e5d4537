<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Lifecycle;

use Spindle\Postgres\PostgresConnection;

final class PostgresConnectionLifecycleTest extends PostgresLifecycleContract
{
    protected function create(): PostgresConnection
    {
        return PostgresConnection::connect($this->options());
    }
}

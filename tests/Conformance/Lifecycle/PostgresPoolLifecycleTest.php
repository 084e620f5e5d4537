<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Lifecycle;

use Spindle\Postgres\PostgresPool;

final class PostgresPoolLifecycleTest extends PostgresLifecycleContract
{
    protected function create(): PostgresPool
    {
        return new PostgresPool($this->options(), 2);
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres;

use Spindle\Postgres\PostgresLink;
use Spindle\Postgres\PostgresPool;

/** What a pool promises. */
abstract class PoolContract extends LinkContract
{
    protected function link(): PostgresLink
    {
        return new PostgresPool($this->options(), 3);
    }
}

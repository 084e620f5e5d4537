<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres;

use Spindle\Postgres\PostgresLink;

/** What a connection promises. */
abstract class ConnectionContract extends LinkContract
{
    protected function link(): PostgresLink
    {
        return $this->connect();
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres;

use PHPUnit\Framework\Attributes\After;
use Spindle\Postgres\PooledConnection;
use Spindle\Postgres\PostgresLink;
use Spindle\Postgres\PostgresPool;

/** Tests of a borrowed connection, as a link. */
abstract class PooledConnectionContract extends LinkContract
{
    /** @var list<PooledConnection> */
    private array $borrowed = [];

    #[After(5)]
    protected function release(): void
    {
        foreach ($this->borrowed as $connection) {
            $connection->release();
        }
        $this->borrowed = [];
    }

    protected function link(): PostgresLink
    {
        return $this->borrowed[] = (new PostgresPool($this->options(), 1))->acquire();
    }
}

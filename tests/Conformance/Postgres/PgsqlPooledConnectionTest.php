<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres;

final class PgsqlPooledConnectionTest extends PooledConnectionContract
{
    use ExtPgsqlDriver;
}

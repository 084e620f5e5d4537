<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres;

final class PgsqlPoolTest extends PoolContract
{
    use ExtPgsqlDriver;
}

<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres;

use PHPUnit\Framework\Attributes\Before;
use Spindle\Postgres\Internal\Pgsql\PgsqlConnector;
use Spindle\Postgres\PostgresDriver;

/** @phpstan-require-extends PostgresContract */
trait ExtPgsqlDriver
{
    #[Before(20)]
    protected function needsTheDriver(): void
    {
        if (!class_exists(PgsqlConnector::class)) {
            self::markTestSkipped('There is no driver for ext-pgsql yet');
        }
    }

    protected function driver(): PostgresDriver
    {
        return PostgresDriver::ExtPgsql;
    }

    protected function copiesOut(): bool
    {
        return false;
    }
}

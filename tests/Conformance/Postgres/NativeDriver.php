<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres;

use Spindle\Postgres\PostgresDriver;

/** @phpstan-require-extends PostgresContract */
trait NativeDriver
{
    protected function driver(): PostgresDriver
    {
        return PostgresDriver::Native;
    }

    protected function copiesOut(): bool
    {
        return true;
    }
}

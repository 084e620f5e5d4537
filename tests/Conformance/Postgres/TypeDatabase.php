<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres;

use Spindle\Tests\Postgres\Cluster;
use Spindle\Tests\Postgres\TypeCases;

/** The database with the types for {@see TypeCases}. */
final class TypeDatabase
{
    private static ?string $name = null;

    public static function name(): string
    {
        if (self::$name === null) {
            self::$name = Cluster::newDatabase();
            Cluster::ask(TypeCases::SETUP, Cluster::shared()->dsn(dbname: self::$name));
        }

        return self::$name;
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Postgres;

use PHPUnit\Framework\TestCase;
use Spindle\Postgres\Testing\Internal\Binaries;

final class BinariesTest extends TestCase
{
    public function testTheNewestVersionIsFirstWhateverTheRestOfThePathIs(): void
    {
        self::assertSame(
            [
                '/opt/homebrew/opt/postgresql@17/bin',
                '/usr/lib/postgresql/16/bin',
                '/usr/libexec/postgresql15',
                '/usr/lib/postgresql/9.6/bin',
                '/usr/pgsql-9.6/bin',
                '/usr/pgsql-9.5/bin',
                '/usr/libexec/postgresql',
                '/usr/local/pgsql/bin',
            ],
            Binaries::newestFirst([
                '/usr/lib/postgresql/9.6/bin',
                '/usr/lib/postgresql/16/bin',
                '/usr/libexec/postgresql',
                '/usr/libexec/postgresql15',
                '/usr/pgsql-9.5/bin',
                '/usr/pgsql-9.6/bin',
                '/opt/homebrew/opt/postgresql@17/bin',
                '/usr/local/pgsql/bin',
            ]),
        );
    }
}

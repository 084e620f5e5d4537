<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres;

use PHPUnit\Framework\Attributes\Group;

/** Tests the rest of the contract on pools with ext-pgsql: code that does not depend on the driver. */
#[Group('full')]
final class PgsqlPoolFullTest extends PoolContract
{
    use ExtPgsqlDriver;
    use Contract\RunsOnEveryLink;
    use Contract\RunsOnEveryDriver;
    use Contract\RunsOnEveryPool;
    use Contract\UndoesChanges;
    use Contract\Listens;
}

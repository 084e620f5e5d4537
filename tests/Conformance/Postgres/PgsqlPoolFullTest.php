<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres;

use PHPUnit\Framework\Attributes\Group;

/** What no driver makes a difference to, and all changes of a session. */
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

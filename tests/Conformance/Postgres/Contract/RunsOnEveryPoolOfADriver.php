<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres\Contract;

use Spindle\Tests\Conformance\Postgres\PoolContract;

/**
 * Tests the code of a pool that depends on the driver: sharing, resetting, losing and closing sessions.
 *
 * @phpstan-require-extends PoolContract
 */
trait RunsOnEveryPoolOfADriver
{
    use ClosesThePool;
    use ReplacesConnections;
    use RunsSideBySide;
    use UndoesChanges;
}

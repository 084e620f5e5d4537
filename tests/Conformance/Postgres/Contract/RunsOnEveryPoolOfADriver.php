<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres\Contract;

use Spindle\Tests\Conformance\Postgres\PoolContract;

/**
 * What a pool does in a way that depends on the driver: whether sessions are shared, reset, found to be lost, closed.
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

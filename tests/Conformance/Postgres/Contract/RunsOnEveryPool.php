<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres\Contract;

use Spindle\Tests\Conformance\Postgres\PoolContract;

/**
 * What a pool does with its sessions, whichever driver makes them.
 *
 * @phpstan-require-extends PoolContract
 */
trait RunsOnEveryPool
{
    use KeepsConnections;
    use LendsConnections;
    use ReportsLeaks;
}

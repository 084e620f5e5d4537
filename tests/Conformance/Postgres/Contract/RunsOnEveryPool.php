<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres\Contract;

use Spindle\Tests\Conformance\Postgres\PoolContract;

/**
 * Tests how a pool manages its sessions, independent of the driver.
 *
 * @phpstan-require-extends PoolContract
 */
trait RunsOnEveryPool
{
    use KeepsConnections;
    use LendsConnections;
    use ReportsLeaks;
}

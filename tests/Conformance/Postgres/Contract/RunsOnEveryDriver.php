<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres\Contract;

use Spindle\Tests\Conformance\Postgres\LinkContract;

/**
 * Tests how a driver sends statements and reads answers. Among the links, only a connection has code for that.
 *
 * @phpstan-require-extends LinkContract
 */
trait RunsOnEveryDriver
{
    use GivesRows;
    use MakesObjects;
    use TakesOneStatement;
    use TakesParameters;
    use ReportsErrors;
}

<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres\Contract;

use Spindle\Tests\Conformance\Postgres\LinkContract;

/**
 * Tests how statements are sent and answers are read. Among the links, only a connection has code for that.
 *
 * @phpstan-require-extends LinkContract
 */
trait SendsStatements
{
    use GivesRows;
    use MakesObjects;
    use TakesOneStatement;
    use TakesParameters;
    use ReportsErrors;
}

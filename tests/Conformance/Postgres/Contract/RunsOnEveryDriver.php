<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres\Contract;

use Spindle\Tests\Conformance\Postgres\LinkContract;

/**
 * What a driver makes of a statement and its answer. No link but the connection has code of its own for it.
 *
 * @phpstan-require-extends LinkContract
 */
trait RunsOnEveryDriver
{
    use GivesRows;
    use MakesObjects;
    use TakesOneStatement;
    use TakesParameters;
    use TellsErrors;
}

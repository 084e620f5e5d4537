<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres\Contract;

use Spindle\Tests\Conformance\Postgres\LinkContract;

/**
 * Tests the code of each kind of link: connection, borrowed connection, pool and transaction.
 *
 * @phpstan-require-extends LinkContract
 */
trait RunsOnEveryLink
{
    use CopiesIn;
    use IsCancelled;
    use RunsScripts;
    use RunsTransactions;
    use StreamsRows;
}

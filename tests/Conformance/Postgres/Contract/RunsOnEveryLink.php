<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres\Contract;

use Spindle\Tests\Conformance\Postgres\LinkContract;

/**
 * What each kind of link does with its session by itself: a connection, a borrowed one, a pool, a transaction.
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

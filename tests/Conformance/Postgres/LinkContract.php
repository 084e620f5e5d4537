<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres;

use Spindle\Postgres\PostgresLink;

/** What everything promises that statements are sent through: a connection, a borrowed one, a pool, a transaction. */
abstract class LinkContract extends PostgresContract
{
    use Contract\GivesRows;
    use Contract\MakesObjects;
    use Contract\TakesOneStatement;
    use Contract\TakesParameters;
    use Contract\StreamsRows;
    use Contract\CopiesIn;
    use Contract\RunsScripts;
    use Contract\TellsErrors;
    use Contract\RunsTransactions;
    use Contract\IsCancelled;

    /** A new one, which is held until the test ends. */
    abstract protected function link(): PostgresLink;
}

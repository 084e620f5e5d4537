<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres;

use Spindle\Postgres\PostgresLink;

/**
 * Tests of one kind of link that statements are sent through: a connection, a borrowed one, a pool or a transaction.
 *
 * Full runs check the whole contract on each link of each driver. Other runs check it on the connections of both
 * drivers, and on the other links what these may break: {@see Contract\RunsOnEveryLink}.
 */
abstract class LinkContract extends PostgresContract
{
    /** A new one, which is held until the test ends. */
    abstract protected function link(): PostgresLink;
}

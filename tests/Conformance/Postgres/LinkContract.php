<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres;

use Spindle\Postgres\PostgresLink;

/**
 * Tests of one kind of link: a connection, a borrowed one, a pool or a transaction.
 *
 * Full runs check the whole contract on each link. Other runs check it on connections, and on other links only what
 * these may break: {@see Contract\RunsOnEveryLink}.
 */
abstract class LinkContract extends PostgresContract
{
    /** Creates a link, which is kept until the test ends. */
    abstract protected function link(): PostgresLink;
}

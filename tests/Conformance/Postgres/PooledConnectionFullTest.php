<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres;

use PHPUnit\Framework\Attributes\Group;

/** Tests the rest of the contract on borrowed connections: code of sessions. */
#[Group('full')]
final class PooledConnectionFullTest extends PooledConnectionContract
{
    use Contract\SendsStatements;
}

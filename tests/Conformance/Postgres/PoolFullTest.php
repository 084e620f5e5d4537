<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres;

use PHPUnit\Framework\Attributes\Group;

/** Tests the rest of the contract on pools: code of sessions and connections. */
#[Group('full')]
final class PoolFullTest extends PoolContract
{
    use Contract\SendsStatements;
    use Contract\Listens;
}

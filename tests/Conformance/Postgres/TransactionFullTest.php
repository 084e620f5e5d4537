<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres;

use PHPUnit\Framework\Attributes\Group;

/** Tests the rest of the contract on transactions: code of sessions. */
#[Group('full')]
final class TransactionFullTest extends TransactionContract
{
    use Contract\SendsStatements;
}

<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres;

use PHPUnit\Framework\Attributes\Group;

/** What a transaction leaves to its session. */
#[Group('full')]
final class NativeTransactionFullTest extends TransactionContract
{
    use NativeDriver;
    use Contract\RunsOnEveryDriver;
}

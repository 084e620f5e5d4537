<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres;

final class NativeTransactionTest extends TransactionContract
{
    use NativeDriver;
    use Contract\RunsOnEveryLink;
    use Contract\CopiesOut;
}

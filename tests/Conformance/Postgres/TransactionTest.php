<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres;

final class TransactionTest extends TransactionContract
{
    use Contract\RunsOnEveryLink;
    use Contract\CopiesOut;
}

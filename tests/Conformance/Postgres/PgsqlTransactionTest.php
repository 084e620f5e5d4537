<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres;

final class PgsqlTransactionTest extends TransactionContract
{
    use ExtPgsqlDriver;
    use Contract\RunsOnEveryLink;
    use Contract\RefusesToCopyOut;
}

<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres;

final class PgsqlConnectionTest extends ConnectionContract
{
    use ExtPgsqlDriver;
    use Contract\RefusesToCopyOut;
}

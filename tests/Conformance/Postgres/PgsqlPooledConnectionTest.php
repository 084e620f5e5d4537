<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres;

use PHPUnit\Framework\Attributes\Group;

/** Tests borrowed connections, which have no code that depends on the driver. */
#[Group('full')]
final class PgsqlPooledConnectionTest extends PooledConnectionContract
{
    use ExtPgsqlDriver;
    use Contract\RunsOnEveryLink;
    use Contract\RunsOnEveryDriver;
    use Contract\RefusesToCopyOut;
}

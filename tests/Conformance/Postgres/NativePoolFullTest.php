<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres;

use PHPUnit\Framework\Attributes\Group;

/** What a pool leaves to its sessions, and to connections of their own. */
#[Group('full')]
final class NativePoolFullTest extends PoolContract
{
    use NativeDriver;
    use Contract\RunsOnEveryDriver;
    use Contract\Listens;
}

<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres;

use PHPUnit\Framework\Attributes\Group;

/** What a borrowed connection leaves to its session. */
#[Group('full')]
final class NativePooledConnectionFullTest extends PooledConnectionContract
{
    use NativeDriver;
    use Contract\RunsOnEveryDriver;
}

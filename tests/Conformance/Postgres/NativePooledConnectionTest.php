<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres;

final class NativePooledConnectionTest extends PooledConnectionContract
{
    use NativeDriver;
}

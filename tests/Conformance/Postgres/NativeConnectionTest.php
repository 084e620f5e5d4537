<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres;

final class NativeConnectionTest extends ConnectionContract
{
    use NativeDriver;
}

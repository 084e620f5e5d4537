<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres;

final class NativePooledConnectionTest extends PooledConnectionContract
{
    use NativeDriver;
    use Contract\RunsOnEveryLink;
    use Contract\CopiesOut;
}

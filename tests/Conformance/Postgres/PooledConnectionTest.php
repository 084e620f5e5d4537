<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres;

final class PooledConnectionTest extends PooledConnectionContract
{
    use Contract\RunsOnEveryLink;
    use Contract\CopiesOut;
}

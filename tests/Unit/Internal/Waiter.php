<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Internal;

use Spindle\Postgres\Internal\OneWaiter;

final class Waiter
{
    use OneWaiter;
}

<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Internal;

use Spindle\Postgres\Internal\SuspendsOneCaller;

final class Waiter
{
    use SuspendsOneCaller;
}

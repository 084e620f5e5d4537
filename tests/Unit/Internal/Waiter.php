<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Internal;

use Spindle\Internal\Async\SuspendsOneCaller;

final class Waiter
{
    use SuspendsOneCaller;
}

<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Cli\Run;

use PHPUnit\Framework\TestCase;
use Spindle\Cli\Internal\Run\SlotTable;

final class SlotTableTest extends TestCase
{
    public function testAJobGetsTheLowestSlotThatIsFree(): void
    {
        $slots = new SlotTable();
        self::assertSame([1, 2, 3, 4], [$slots->acquire(), $slots->acquire(), $slots->acquire(), $slots->acquire()]);

        $slots->release(3);
        $slots->release(2);

        self::assertSame([2, 3, 5], [$slots->acquire(), $slots->acquire(), $slots->acquire()]);
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Runner\Fixture;

use PHPUnit\Framework\TestCase;
use Spindle\Tests\SharedMemory;

/** Leaves things that only the end of its sandbox can remove, then waits longer than any deadline. */
final class Leaves extends TestCase
{
    public function testLeavesMuchAndHangs(): void
    {
        shmop_open(random_int(1, 0x7FFF_FFFF), 'n', 0o600, 4_096);
        self::assertNotSame([], SharedMemory::segments());
        file_put_contents(sys_get_temp_dir() . '/left-' . getenv('SPINDLE_LEFT'), 'file');
        exec('setsid sleep 600 > /dev/null 2>&1 &');
        sleep(600);
    }
}

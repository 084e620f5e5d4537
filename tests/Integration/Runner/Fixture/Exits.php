<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Runner\Fixture;

use PHPUnit\Framework\TestCase;

final class Exits extends TestCase
{
    public function testExits(): void
    {
        exit(0);
    }

    public function testIsNeverReached(): void
    {
        self::assertSame(getmypid(), getmypid());
    }
}

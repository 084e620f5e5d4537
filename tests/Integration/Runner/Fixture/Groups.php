<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Runner\Fixture;

use PHPUnit\Framework\Attributes\Group;
use PHPUnit\Framework\TestCase;

final class Groups extends TestCase
{
    #[Group('full')]
    public function testOnlyInFull(): void
    {
        self::assertSame('1', getenv('SPINDLE_TEST_FULL'));
    }

    #[Group('quiet')]
    public function testQuiet(): void
    {
        self::assertSame(getmypid(), getmypid());
    }

    public function testAlways(): void
    {
        self::assertSame(getmypid(), getmypid());
    }
}

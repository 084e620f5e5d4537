<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Runner\Fixture;

use PHPUnit\Framework\TestCase;

final class KillsItsGroup extends TestCase
{
    public function testKillsItsGroup(): void
    {
        posix_kill(0, \SIGTERM);
        self::assertSame(getmypid(), getmypid());
    }
}

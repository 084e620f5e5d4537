<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Runner\Fixture;

use PHPUnit\Framework\TestCase;

final class IsKilled extends TestCase
{
    public function testIsKilled(): void
    {
        posix_kill((int) getmypid(), \SIGKILL);
    }
}

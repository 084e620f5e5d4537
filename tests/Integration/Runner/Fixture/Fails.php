<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Runner\Fixture;

use PHPUnit\Framework\TestCase;

final class Fails extends TestCase
{
    public function testPasses(): void
    {
        self::assertSame(getmypid(), getmypid());
    }

    public function testFails(): void
    {
        fwrite(STDERR, "written to standard error\n");
        self::assertSame(1, getmypid(), 'the message of the failure');
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Runner\Fixture;

use PHPUnit\Framework\TestCase;

final class Passes extends TestCase
{
    public function testOne(): void
    {
        self::assertNotSame('', getenv('SPINDLE_TEST_SEED'));
    }

    public function testTwo(): void
    {
        self::assertSame([], glob(sys_get_temp_dir() . '/*'), 'the temporary directory is empty');
    }
}

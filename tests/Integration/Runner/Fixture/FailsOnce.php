<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Runner\Fixture;

use PHPUnit\Framework\TestCase;

final class FailsOnce extends TestCase
{
    public function testFailsOnce(): void
    {
        $file = getenv('SPINDLE_LEFT');
        self::assertIsString($file);
        $isFirst = !is_file($file);
        $isFirst ? touch($file) : unlink($file);
        self::assertFalse($isFirst);
    }
}

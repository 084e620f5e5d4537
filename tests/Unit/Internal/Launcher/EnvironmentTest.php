<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Internal\Launcher;

use PHPUnit\Framework\Attributes\RequiresOperatingSystemFamily;
use PHPUnit\Framework\TestCase;
use Spindle\Internal\Launcher\Environment;
use Spindle\Tests\Host;

final class EnvironmentTest extends TestCase
{
    #[RequiresOperatingSystemFamily('Linux')]
    public function testChangesOfPutenvHoldForVariablesWithAnyName(): void
    {
        self::assertSame(
            ['a.b' => '1', 'c.d' => 'changed'],
            Host::call(self::class . '::changed', environment: ['a.b' => '1', 'c.d' => '2', 'e.f' => '3']),
        );
    }

    /** @return array<array-key, string> */
    public static function changed(): array
    {
        putenv('c.d=changed');
        putenv('e.f');

        return array_intersect_key(Environment::variables(), ['a.b' => 1, 'c.d' => 1, 'e.f' => 1]);
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Process;

use PHPUnit\Framework\TestCase;
use Revolt\EventLoop\Driver;
use Spindle\Http\Internal\Process\ServingProcess;

/** Fails if a version of Revolt has renamed the private property that {@see ServingProcess} sets. */
final class EventLoopIdsTest extends TestCase
{
    public function testCallbackIdsOfAServingProcessHaveADigit(): void
    {
        $loop = (new \ReflectionMethod(ServingProcess::class, 'createLoop'))->invoke(null);
        \assert($loop instanceof Driver);
        $ids = array_map(static fn(): string => $loop->defer(static fn() => null), range(1, 1000));

        self::assertSame([], preg_grep('/\d/', $ids, \PREG_GREP_INVERT));
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Internal\Network;

use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\TestCase;
use Spindle\Internal\Network\CloseOnExec;
use Spindle\Tests\Processes;
use Spindle\Tests\Streams;

#[RequiresPhpExtension('FFI')]
final class CloseOnExecTest extends TestCase
{
    public function testSocketsWithAnyDescriptorsAreNotInherited(): void
    {
        $before = Processes::inheritedSockets();
        $others = array_map(static fn(): mixed => Streams::open('/dev/null', 'r'), range(1, 5));
        unset($others[1], $others[3]); // the first two free descriptors are not consecutive
        $pair = CloseOnExec::call(Streams::pair(...), 2);
        $next = CloseOnExec::call(Streams::server(...));

        self::assertSame($before, Processes::inheritedSockets());
        array_map(fclose(...), [...$others, ...$pair, $next]);
    }

    public function testDescriptorsThatTheClosureDoesNotOpenAreInherited(): void
    {
        CloseOnExec::call(static fn() => null);
        $pair = Streams::pair();
        $before = Processes::inheritedSockets();
        CloseOnExec::call(static fn() => null, 3);

        self::assertSame($before, Processes::inheritedSockets());
        self::assertGreaterThanOrEqual(2, \count($before));
        array_map(fclose(...), $pair);
    }
}

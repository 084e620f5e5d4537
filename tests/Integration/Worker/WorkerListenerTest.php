<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Worker;

use PHPUnit\Framework\TestCase;
use Spindle\Tests\LeavesNothing;
use Spindle\Tests\VirtualTime;
use Spindle\Worker\Internal\WorkerListener;

use function Amp\delay;

final class WorkerListenerTest extends TestCase
{
    use LeavesNothing;
    use VirtualTime;

    /** Shows that a stranger does not hold a descriptor any longer. */
    public function testASilentStrangerIsDisconnectedAfterTenSeconds(): void
    {
        $listener = new WorkerListener(
            static fn() => self::fail('It has not greeted'),
            static fn() => self::fail('There are descriptors'),
        );
        $stranger = stream_socket_client("unix://\0{$listener->name}");
        self::assertIsResource($stranger);
        stream_set_blocking($stranger, false);
        delay(9.9);
        self::assertSame('', fread($stranger, 1));
        self::assertFalse(feof($stranger), 'it may still greet');
        delay(0.2);
        self::assertSame('', fread($stranger, 1));

        self::assertTrue(feof($stranger), 'it is sent away');
        fclose($stranger);
        $listener->close();
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Internal;

use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\TestCase;
use Revolt\EventLoop;
use Spindle\Internal\SignalWatch;
use Spindle\Tests\EndsInTime;

#[RequiresPhpExtension('pcntl')]
#[RequiresPhpExtension('posix')]
final class SignalWatchTest extends TestCase
{
    use EndsInTime;

    public function testASignalThatArrivesJustBeforeTheLoopWaitsIsHandled(): void
    {
        stream_wrapper_register('signalling', SignallingStream::class);
        $stream = fopen('signalling://', 'r');
        self::assertIsResource($stream);
        $suspension = EventLoop::getSuspension();
        $ids = SignalWatch::start([\SIGUSR1 => static fn(string $id, int $signal) => $suspension->resume($signal)]);
        $readable = EventLoop::onReadable($stream, static fn() => $suspension->resume('readable'));
        try {
            $received = $suspension->suspend();
        } finally {
            array_map(EventLoop::cancel(...), [...$ids, $readable]);
            stream_wrapper_unregister('signalling');
        }

        self::assertSame(\SIGUSR1, $received);
    }
}

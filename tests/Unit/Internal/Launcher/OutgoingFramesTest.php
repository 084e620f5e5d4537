<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Internal\Launcher;

use PHPUnit\Framework\TestCase;
use Spindle\Internal\Launcher\LauncherProtocol;
use Spindle\Internal\Launcher\Process\Backend;
use Spindle\Internal\Launcher\Process\LauncherJob;
use Spindle\Internal\Launcher\Process\OutgoingFrames;
use Spindle\Internal\Launcher\Process\WaitingJobs;

final class OutgoingFramesTest extends TestCase
{
    /** Otherwise, the launcher would wait for a time that has passed, so it would never sleep. */
    public function testNoFrameIsDueAfterAllFramesAreSent(): void
    {
        $backend = self::createStub(Backend::class);
        $backend->method('send')->willReturn('');
        $waiting = new WaitingJobs();
        $waiting->add(new LauncherJob(1, 0, 0, 0.0, 0.0, '', [], '', 'true', '', 0o022));
        $frames = new OutgoingFrames($backend, $waiting);
        // A frame is held back only if the previous one was sent less than 2 ms ago.
        for ($tries = 0; $frames->isEmpty() && $tries < 1000; ++$tries) {
            $frames->add(LauncherProtocol::STARTED, 1, '');
            $frames->sendIfDue();
        }
        self::assertFalse($frames->isEmpty());
        self::assertGreaterThan(0, $frames->dueAt);

        $frames->send();

        self::assertTrue($frames->isEmpty());
        self::assertSame(0, $frames->dueAt);
    }
}

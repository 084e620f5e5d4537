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
        $frames = self::framesWithAWaitingJob(static fn(): string => '');
        self::addUntilHeld($frames);
        self::assertFalse($frames->isEmpty());
        self::assertGreaterThan(0, $frames->dueAt);

        $frames->send();

        self::assertTrue($frames->isEmpty());
        self::assertSame(0, $frames->dueAt);
    }

    /** Otherwise, the launcher would wake up every 2 ms, although it wakes up when the pipe has space. */
    public function testNoFrameIsDueWhileThePipeIsFull(): void
    {
        $sends = 0;
        $frames = self::framesWithAWaitingJob(static function (string $bytes) use (&$sends): string {
            return ++$sends < 4 ? $bytes : '';
        });
        foreach ([1, 2, 3] as $job) {
            $frames->add(LauncherProtocol::STARTED, $job, '');
            $frames->sendIfDue();

            self::assertSame(0, $frames->dueAt);
            self::assertSame($job, $sends);
        }

        $frames->sendIfDue();
        self::assertTrue($frames->isEmpty());
        self::addUntilHeld($frames);
        self::assertGreaterThan(0, $frames->dueAt, 'frames are held back again');
    }

    /** A frame is held back only if the previous one was sent less than 2 ms ago, which a busy machine may exceed. */
    private static function addUntilHeld(OutgoingFrames $frames): void
    {
        for ($tries = 0; $frames->isEmpty() && $tries < 1000; ++$tries) {
            $frames->add(LauncherProtocol::STARTED, 4, '');
            $frames->sendIfDue();
        }
    }

    /** @param \Closure(string): string $send as {@see Backend::send()} */
    private static function framesWithAWaitingJob(\Closure $send): OutgoingFrames
    {
        $backend = self::createStub(Backend::class);
        $backend->method('send')->willReturnCallback($send);
        /** @var WaitingJobs<LauncherJob> $waiting */
        $waiting = new WaitingJobs();
        $waiting->add(new LauncherJob(1, 0, 0, 0.0, 0.0, '', [], '', 'true', '', 0o022));

        return new OutgoingFrames($backend, $waiting);
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Testing;

use Amp\CancelledException;
use Amp\DeferredFuture;
use Amp\TimeoutCancellation;
use Revolt\EventLoop;
use Spindle\Internal\Clock;
use Spindle\Tests\Async;
use Spindle\Tests\Eventually;
use Spindle\Tests\TidyTestCase;
use Spindle\Tests\VirtualDriver;
use Spindle\Tests\VirtualTime;

use function Amp\delay;

final class VirtualTimeTest extends TidyTestCase
{
    use VirtualTime;

    public function testAnHourPassesInNoTime(): void
    {
        $real = hrtime(true);
        $virtual = $this->now();
        delay(3600);

        self::assertEqualsWithDelta(3600.0, $this->now() - $virtual, 1e-6);
        self::assertLessThan(1.0, (hrtime(true) - $real) / 1e9);
    }

    public function testTheProjectsClockShowsIt(): void
    {
        $before = Clock::now();
        self::assertSame($this->now(), $before);
        delay(5);

        self::assertEqualsWithDelta(5.0, Clock::now() - $before, 1e-6);
    }

    public function testTimersComeInTheirOrderAndTheClockStandsStillBetweenThem(): void
    {
        $begin = $this->now();
        $seen = [];
        foreach ([30, 10, 20, 10] as $i => $seconds) {
            EventLoop::delay($seconds, function () use (&$seen, $i, $begin): void {
                usleep(1000);
                $seen[] = [$i, round($this->now() - $begin, 6)];
            });
        }
        EventLoop::run();

        self::assertSame([[1, 10.0], [3, 10.0], [2, 20.0], [0, 30.0]], $seen);
    }

    public function testWhatIsDueWhileNothingRunsComesLate(): void
    {
        $begin = $this->now();
        EventLoop::delay(1, function () use (&$seen, $begin): void {
            $seen = $this->now() - $begin;
        });
        $this->freeze(60.0);
        EventLoop::run();

        self::assertEqualsWithDelta(60.0, $seen, 1e-6);
    }

    public function testTheClockWaitsForWhateverIsRunnable(): void
    {
        $begin = $this->now();
        EventLoop::delay(0.001, static function (): void {});
        $turns = 0;
        Async::run(static function () use (&$turns): void {
            while ($turns < 100) {
                $turn = EventLoop::getSuspension();
                EventLoop::defer(static function () use ($turn, &$turns): void {
                    ++$turns;
                    $turn->resume();
                });
                $turn->suspend();
            }
        })->await();

        self::assertSame($begin, $this->now());
        EventLoop::run();
    }

    public function testATimeoutOfAMinuteEndsAtItsTime(): void
    {
        $begin = $this->now();
        $watcher = EventLoop::delay(3600, static function (): void {}); // the timer of a timeout is unreferenced
        try {
            (new DeferredFuture())->getFuture()->await(new TimeoutCancellation(60));
            self::fail('The future is never completed');
        } catch (CancelledException) {
            self::assertEqualsWithDelta(60.0, $this->now() - $begin, 1e-6);
        } finally {
            EventLoop::cancel($watcher);
        }
    }

    public function testALateConditionFailsWithoutRealTime(): void
    {
        $real = hrtime(true);
        $begin = $this->now();
        try {
            Eventually::holds(static fn(): bool => false, 'what is false', 20.0);
        } catch (\PHPUnit\Framework\AssertionFailedError) {
            self::assertEqualsWithDelta(20.0, $this->now() - $begin, 0.1);
            self::assertLessThan(5.0, (hrtime(true) - $real) / 1e9);

            return;
        }
        self::fail('The condition does not hold');
    }

    public function testStreamsThatAreReadyComeBeforeTimers(): void
    {
        [$near, $far] = self::pair();
        $seen = [];
        EventLoop::delay(10, static function () use (&$seen): void {
            $seen[] = 'timer';
        });
        $write = EventLoop::onWritable($near, static function (string $id) use (&$seen, $near): void {
            EventLoop::cancel($id);
            $seen[] = 'writable';
            fwrite($near, 'x');
        });
        $read = EventLoop::onReadable($far, static function (string $id) use (&$seen, $far): void {
            EventLoop::cancel($id);
            $seen[] = 'readable ' . fread($far, 8);
        });
        EventLoop::run();

        self::assertSame(['writable', 'readable x', 'timer'], $seen);
        self::assertNotSame($write, $read);
        fclose($near);
        fclose($far);
    }

    public function testWaitingForNothingAtAllFailsAtOnce(): void
    {
        $this->expectException(\Error::class);
        $this->expectExceptionMessage('Event loop terminated without resuming the current suspension');
        EventLoop::getSuspension()->suspend();
    }

    public function testWaitingForAStreamThatNobodyWritesToFailsAtOnce(): void
    {
        [$near, $far] = self::pair();
        $watcher = EventLoop::onReadable($near, static function (): void {});
        $real = hrtime(true);
        try {
            EventLoop::getSuspension()->suspend();
            self::fail('Nothing ends the wait');
        } catch (\LogicException $thrown) {
            self::assertSame('Nothing will ever happen: no stream is ready and no timer is set', $thrown->getMessage());
            self::assertLessThan(1.0, (hrtime(true) - $real) / 1e9);
        } finally {
            EventLoop::cancel($watcher);
            fclose($near);
            fclose($far);
        }
    }

    public function testATimerThatRepeatsForEverEndsAtTheLimit(): void
    {
        $driver = new VirtualDriver(limit: 100.0);
        $ticks = 0;
        $driver->repeat(10.0, static function () use (&$ticks): void {
            ++$ticks;
        });
        $thrown = null;
        try {
            $driver->run();
        } catch (\Throwable $thrown) {
        }

        self::assertInstanceOf(\LogicException::class, $thrown);
        self::assertSame('The next timer is after the end of virtual time, 100 s', $thrown->getMessage());
        self::assertSame(10, $ticks);
    }

    public function testSignalsAreRefused(): void
    {
        $driver = new VirtualDriver();
        $driver->onSignal(\SIGUSR1, static function (): void {});

        $this->expectException(\LogicException::class);
        $this->expectExceptionMessage('The virtual driver does not support signals: use the real one');
        $driver->run();
    }

    public function testCancelledTimersAndStreamsAreForgotten(): void
    {
        [$near, $far] = self::pair();
        $driver = new VirtualDriver();
        $calls = 0;
        $count = static function () use (&$calls): void {
            ++$calls;
        };
        $ids = [$driver->delay(5, $count), $driver->onReadable($near, $count), $driver->onWritable($near, $count)];
        $driver->delay(1, static function () use ($driver, $ids): void {
            array_map($driver->cancel(...), $ids);
        });
        $driver->queue(static fn() => $driver->disable($ids[2]));
        $driver->run();

        self::assertSame([0, 1.0], [$calls, $driver->time()]);
        fclose($near);
        fclose($far);
    }

    public function testARealDriverIsBackAfterwards(): void
    {
        delay(1); // leaves the loop waiting for {main}
        $this->leaveVirtualTime();
        try {
            self::assertNotInstanceOf(VirtualDriver::class, EventLoop::getDriver());
            $begin = hrtime(true);
            $clock = Clock::now();
            delay(0.01);
            self::assertGreaterThan(0.009, (hrtime(true) - $begin) / 1e9);
            self::assertGreaterThan(0.009, Clock::now() - $clock);
            self::assertEqualsWithDelta(hrtime(true) / 1e9, Clock::now(), 1.0);
        } finally {
            $this->enterVirtualTime();
        }
        self::assertInstanceOf(VirtualDriver::class, EventLoop::getDriver());
    }

    /** @return array{resource, resource} */
    private static function pair(): array
    {
        $pair = stream_socket_pair(\STREAM_PF_UNIX, \STREAM_SOCK_STREAM, 0);
        [$near, $far] = $pair === false ? [null, null] : $pair;
        self::assertIsResource($near);
        self::assertIsResource($far);
        stream_set_blocking($near, false);
        stream_set_blocking($far, false);

        return [$near, $far];
    }
}

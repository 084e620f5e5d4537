<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Remote;

use PHPUnit\Framework\Attributes\After;
use PHPUnit\Framework\Attributes\DataProvider;
use Spindle\Remote\RedisBroker;
use Spindle\Tests\Eventually;
use Spindle\Tests\Host;
use Spindle\Tests\Processes;
use Spindle\Tests\Text;
use Spindle\Tests\TidyTestCase;
use Spindle\Worker\TaskTimeoutException;

/** Machines whose clocks are wrong. Only the engine's clock counts. */
final class ClockTest extends TidyTestCase
{
    use OwnEngine;

    private const HOUR = 3600;

    #[DataProvider('errors')]
    public function testTimesAreTheEngineS(int $agents, int $callers): void
    {
        $address = $this->engine()->url();
        $executor = $this->executor(new RedisBroker($address));
        $long = $this->directory('long');
        $this->agentWithin([], self::wrongBy($agents), $address, $this->queue(), 2, ...self::SHORT);
        $lasting = $executor->submit(static fn(): int => CountedTasks::tick($long, 1, 3.0)); // longer than the lease
        $this->waitForFile("{$long}/1.began");
        $this->agentWithin([], self::wrongBy($callers), $address, $this->queue(), 2, ...self::SHORT);
        /** @var array{float, int, string, float, string, float} $outcome */
        $outcome = Host::call(
            CallerProgram::class . '::run',
            [$address, $this->queue()],
            environment: self::wrongBy($callers),
        );
        [$time, $result, $id, $delayed, $failure, $after] = $outcome;

        self::assertEqualsWithDelta($callers, $time - microtime(true), 60.0, 'its clock is wrong');
        self::assertSame(7, $result);
        self::assertGreaterThan(0.9, $delayed);
        self::assertLessThan(4.0, $delayed);
        self::assertSame(TaskTimeoutException::class, $failure);
        self::assertGreaterThan(0.4, $after);
        self::assertLessThan(4.0, $after);
        $kept = $this->engine()->command('TTL', "spindle:{{$this->queue()}}:result:{$id}");
        self::assertIsInt($kept);
        self::assertGreaterThan(self::HOUR - 30, $kept);
        self::assertLessThanOrEqual(self::HOUR, $kept);
        self::assertSame(1, $lasting->await());
        self::assertSame(0, $this->statistics()['lost_total'], 'no lease has ended');
    }

    public function testALeaseThatEndsDoesSoByTheEngineSClock(): void
    {
        [$dying, $living] = [self::HOUR, -self::HOUR];
        $address = $this->engine()->url();
        $executor = $this->executor(new RedisBroker($address));
        $directory = $this->directory('runs');
        $agent = $this->agentWithin([], self::wrongBy($dying), $address, $this->queue(), 1, ...self::SHORT);
        $future = $executor->submit(static fn(): int => CountedTasks::tick($directory, 1, 60.0));
        $this->waitForFile("{$directory}/1.began");
        $other = $this->agentWithin([], self::wrongBy($living), $address, $this->queue(), 1, ...self::SHORT);
        Eventually::holds(fn(): bool => $this->statistics()['agents'] === 2, 'both serve');
        $killed = hrtime(true) / 1e9;
        $agent->signal(\SIGKILL);

        self::assertSame(2, $future->await());
        $seconds = self::tick("{$directory}/2.began") - $killed;
        self::assertGreaterThan(1.5, $seconds);
        self::assertLessThan(8.0, $seconds);
        self::assertTrue(Processes::isAlive((int) $other->getPid()));
    }

    /** Removes the shared memory of libfaketime, which remains when its processes are killed. */
    #[After(-3)]
    protected function removeShared(): void
    {
        foreach (Text::names('/dev/shm') as $name) {
            if (
                preg_match('/^(?:sem\.)?faketime_(?:sem|shm)_(\d+)$/D', $name, $match) === 1
                && !Processes::isAlive((int) $match[1])
            ) {
                unlink("/dev/shm/{$name}");
            }
        }
    }

    /** @return iterable<string, array{int, int}> seconds */
    public static function errors(): iterable
    {
        yield 'fast and slow' => [self::HOUR, -self::HOUR];
        yield 'slow and fast' => [-self::HOUR, self::HOUR];
    }

    /** @return array<string, string> an environment that shifts the clock of a process */
    private static function wrongBy(int $seconds): array
    {
        $library = glob('/usr/lib/*/faketime/libfaketime.so.1')[0] ?? null;
        if ($library === null) {
            self::markTestSkipped('There is no libfaketime (Debian: faketime) to have a wrong clock by');
        }

        return [
            'LD_PRELOAD' => $library,
            'FAKETIME' => \sprintf('%+d', $seconds),
            'FAKETIME_DONT_FAKE_MONOTONIC' => '1',
            'DONT_FAKE_MONOTONIC' => '1',
        ];
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

use Amp\Future;
use PHPUnit\Framework\Attributes\Before;
use PHPUnit\Framework\Attributes\TestWith;
use Revolt\EventLoop;
use Spindle\Tests\Eventually;
use Spindle\Tests\Processes;
use Spindle\Tests\Streams;
use Spindle\Worker\WorkerCrashedException;
use Spindle\Worker\WorkerPool;

/** Tests faults of a worker during a large transfer. */
trait TransferFaults
{
    private const LARGE = 64 << 20;

    /** Removes the memory limit. The default limit is too small for large values. */
    #[Before]
    protected function haveRoom(): void
    {
        ini_set('memory_limit', '-1');
    }

    public function testAWorkerThatIsKilledWhileItsArgumentIsWrittenHasNotStartedTheTask(): void
    {
        $pool = $this->pool(1);
        $worker = $this->onlyWorkerOf($pool);
        $before = memory_get_usage();
        foreach ([0, 1] as $round) {
            $map = $pool->map([str_repeat('x', self::LARGE)], TaskFunctions::size(...));
            EventLoop::defer(static function () use ($worker): void {
                self::awaitSleep($worker);
                posix_kill($worker, \SIGKILL);
            });
            self::assertSame([self::LARGE], iterator_to_array($map), 'another one runs it');
            unset($map);
            $other = $this->onlyWorkerOf($pool);
            self::assertNotSame($worker, $other);
            $worker = $other;
        }
        gc_collect_cycles();

        self::assertLessThan(self::LARGE / 8, memory_get_usage() - $before, 'bytes that stay');
        self::assertUsable($pool);
    }

    public function testATaskThatIsTooLargeForTheMemoryOfAWorkerFailsAndNoOther(): void
    {
        $pool = $this->pool(1, memoryLimit: '32M');
        $large = $pool->submit(new Call('size', str_repeat('x', self::LARGE)));
        $others = array_map(static fn(int $i): Future => $pool->submit(new Call('square', $i)), range(0, 4));
        $outcome = self::outcome($large);

        self::assertInstanceOf(WorkerCrashedException::class, $outcome);
        self::assertStringContainsString('Allowed memory size', $outcome->getMessage());
        self::assertSame([0, 1, 4, 9, 16], self::outcomes($others));
    }

    #[TestWith([ProcessEnding::Segv])]
    #[TestWith([ProcessEnding::Kill])]
    public function testAWorkerThatDiesWhileItWritesAResultFailsThatTaskOnly(ProcessEnding $ending): void
    {
        $pool = $this->pool(1);
        $before = memory_get_usage();
        $worker = $this->onlyWorkerOf($pool);
        $large = $pool->submit(new Call('large', self::LARGE, $this->path('begun'), $ending));
        $next = $pool->submit(new RecordedTask(7, $this->path('starts'), 0));
        $this->haveItWritten($worker, $this->path('begun'));
        posix_kill($worker, (int) $ending->signal());
        [$thrown, $number] = self::outcomes([$large, $next]);
        unset($large);

        self::assertInstanceOf(WorkerCrashedException::class, $thrown);
        self::assertSame([null, $ending->signal()], [$thrown->exitCode, $thrown->signal]);
        self::assertSame([7], self::numbersOf([$number]));
        self::assertSame([7 => 1], RecordedTask::starts($this->path('starts')));
        self::assertUsable($pool);
        gc_collect_cycles();
        self::assertLessThan(self::LARGE / 8, memory_get_usage() - $before, 'bytes that stay');
    }

    /** Shows that bytes after a frame that was cut off are not taken for its end. */
    #[TestWith([ProcessEnding::Error])]
    #[TestWith([ProcessEnding::ExitWith0])]
    #[TestWith([ProcessEnding::ExitWith3])]
    public function testAResultDuringWhichASignalHandlerEndsTheWorkerComesWholeOrNotAtAll(ProcessEnding $ending): void
    {
        $this->needsAProcessForEachWorker('a handler is called in whichever of them, or in none');
        $pool = $this->pool(1);
        // more bytes than fit into the socket at once
        foreach ([1, 5, 15, 50, 150, self::LARGE] as $round => $more) {
            $worker = $this->onlyWorkerOf($pool);
            $size = self::roomInASocket() + $more;
            $begun = $this->path("begun{$round}");
            $large = $pool->submit(new Call('large', $size, $begun, $ending));
            $next = $pool->submit(new RecordedTask($round, $this->path('starts'), 0));
            $this->haveItWritten($worker, $begun);
            posix_kill($worker, \SIGUSR1);
            [$result, $number] = self::outcomes([$large, $next]);

            self::assertTrue(
                $result instanceof WorkerCrashedException || $result === str_repeat('x', $size),
                $result instanceof \Throwable ? (string) $result : "of {$more} more bytes it is another",
            );
            self::assertSame([$round], self::numbersOf([$number]));
            self::assertSame(array_fill(0, $round + 1, 1), RecordedTask::starts($this->path('starts')));
            Eventually::holds(static fn(): bool => !Processes::isAlive($worker), 'the handler has ended it');
            self::assertUsable($pool);
            unset($large, $result);
        }
    }

    public function testInterruptedSystemCallsDoNotDamageAResult(): void
    {
        $pool = $this->pool(1);
        $worker = $this->onlyWorkerOf($pool);
        $large = $pool->submit(new Call('interruptibleLarge', self::LARGE, $this->path('begun')));
        $large->ignore();
        $this->haveItWritten($worker, $this->path('begun'));
        for ($i = 0; $i < 5; ++$i) {
            posix_kill($worker, \SIGUSR1);
            self::awaitSleep($worker);
        }
        $result = self::outcome($large);

        self::assertTrue(
            $result === str_repeat('x', self::LARGE),
            $result instanceof \Throwable ? $result->getMessage() : 'it is another',
        );
        self::assertSame($worker, $this->onlyWorkerOf($pool));
    }

    public function testInterruptedSystemCallsDoNotAffectAWaitingWorker(): void
    {
        $pool = $this->pool(1);
        $worker = $this->onlyWorkerOf($pool);
        touch($this->path('begun.go'));
        self::assertSame('', self::outcome($pool->submit(new Call('interruptibleLarge', 0, $this->path('begun')))));
        for ($i = 0; $i < 5; ++$i) {
            self::awaitSleep($worker);
            posix_kill($worker, \SIGUSR1);
        }

        self::assertSame($worker, $this->onlyWorkerOf($pool));
    }

    /** Makes the worker begin to write a result, which this process reads only when the loop runs again. */
    private function haveItWritten(int $worker, string $begun): void
    {
        self::pidIn($begun);
        touch("{$begun}.go");
        self::awaitSleep($worker);
    }

    /** @return int number of bytes that fit into the socket of a worker */
    private static function roomInASocket(): int
    {
        [$one, $other] = Streams::pair();
        stream_set_blocking($one, false);
        fwrite($one, str_repeat('x', 60)); // the header
        $room = (int) fwrite($one, str_repeat('x', 4 << 20));
        fclose($other);

        return $room;
    }

    private function onlyWorkerOf(WorkerPool $pool): int
    {
        $worker = self::outcome($pool->submit(new Call('pid')));
        self::assertIsInt($worker);

        return $worker;
    }

    /** Waits, without running the loop, until the worker sleeps in a read or write. */
    private static function awaitSleep(int $worker): void
    {
        $asleep = 0;
        Eventually::holdsByItself(static function () use ($worker, &$asleep): bool {
            $asleep = Processes::state($worker) === 'S' || !Processes::isAlive($worker) ? $asleep + 1 : 0;

            return $asleep === 3;
        }, 'the worker waits');
    }
}

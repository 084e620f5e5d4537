<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

use PHPUnit\Framework\Attributes\DataProvider;
use Spindle\Worker\TaskFailedException;
use Spindle\Worker\UnserializableException;
use Spindle\Worker\WorkerCrashedException;

/** Tests that a task that fails, or ends its worker, fails alone. */
trait TaskFaults
{
    /** @return iterable<string, array{TaskPhase}> */
    public static function moments(): iterable
    {
        foreach (TaskPhase::cases() as $moment) {
            yield $moment->value => [$moment];
        }
    }

    #[DataProvider('moments')]
    public function testASubmittedTaskFailsAloneWithItsReason(TaskPhase $moment): void
    {
        $pool = $this->pool(2);
        $file = $this->path('starts');
        foreach (ProcessEnding::cases() as $round => $ending) {
            if ($ending->signal() !== null && !$this->hasAProcessForEachWorker()) {
                continue; // a signal ends the tasks of all workers
            }
            self::assertUsable($pool); // so that the next tasks are sent together
            $futures = [];
            $first = $round * 600;
            for ($i = $first; $i < $first + 300; ++$i) {
                $futures[$i] = $pool->submit(new RecordedTask($i, $file, 0));
            }
            $futures['fragile'] = $pool->submit(new CrashingTask($moment, $ending));
            for ($i = $first + 300; $i < $first + 600; ++$i) {
                $futures[$i] = $pool->submit(new RecordedTask($i, $file, 0));
            }
            $outcomes = self::outcomes($futures);

            $this->assertToldHow($moment, $ending, $outcomes['fragile']);
            unset($outcomes['fragile']);
            // A signal leaves the worker no time to send results that wait. Tasks after the fatal one have run in
            // another worker.
            $lost = array_filter(
                $outcomes,
                static fn(mixed $outcome): bool => $outcome instanceof WorkerCrashedException,
            );
            $numbers = [...array_keys($lost), ...self::numbersOf(array_diff_key($outcomes, $lost))];
            sort($numbers);
            self::assertSame(range($first, $first + 599), $numbers, $ending->value);
            self::assertLessThan(
                $first + ($ending->signal() === null ? 0 : 300),
                max([-1, ...array_keys($lost)]),
                "the last one that {$ending->value} lost",
            );
            self::assertSame(
                array_fill(0, $first + 600, 1),
                RecordedTask::starts($file),
                "each is started once, with {$ending->value}",
            );
        }
        self::assertUsable($pool);
    }

    #[DataProvider('moments')]
    public function testAMapFailsWithTheFailureOfItsInput(TaskPhase $moment): void
    {
        $pool = $this->pool(2);
        foreach (ProcessEnding::cases() as $ending) {
            $input = ['a' => new CrashingTask($moment, $ending)];
            $thrown = null;
            try {
                iterator_to_array($pool->map($input, CrashingTask::through(...)));
            } catch (\Throwable $thrown) {
            }

            $this->assertToldHow($moment, $ending, $thrown, 'a');
            self::assertUsable($pool);
        }
    }

    public function testEachTaskThatEndsTheOnlyWorkerFailsWithItsReason(): void
    {
        $pool = $this->pool(1);
        $futures = [];
        for ($i = 0; $i < 10; ++$i) {
            $futures[] = $pool->submit(new Call('end', ProcessEnding::ExitWith3));
            $futures[] = $pool->submit(new Call('square', $i));
        }
        $outcomes = self::outcomes($futures);

        foreach ($outcomes as $i => $outcome) {
            if ($i % 2 === 0) {
                self::assertInstanceOf(WorkerCrashedException::class, $outcome);
                self::assertSame($this->known(3), $outcome->exitCode);
            } else {
                self::assertSame(intdiv($i, 2) ** 2, $outcome);
            }
        }
        self::assertUsable($pool);
    }

    public function testAnExhaustedMemoryLimitIsReportedWithTheMessageOfPhp(): void
    {
        $pool = $this->pool(2, memoryLimit: '32M');
        $outcomes = self::outcomes([$pool->submit(new Call('exhaustMemory')), $pool->submit(new Call('square', 3))]);

        self::assertInstanceOf(WorkerCrashedException::class, $outcomes[0]);
        self::assertStringContainsString(
            'Allowed memory size of 33554432 bytes exhausted',
            (string) $outcomes[0]->error,
        );
        self::assertStringContainsString((string) $outcomes[0]->error, $outcomes[0]->getMessage());
        self::assertSame($this->known(255), $outcomes[0]->exitCode);
        self::assertNull($outcomes[0]->signal);
        self::assertGreaterThan(20 << 20, $outcomes[0]->memoryPeak);
        self::assertSame(9, $outcomes[1]);
        self::assertUsable($pool);
    }

    public function testAKillAsTheKernelSendsItWhenMemoryRunsOutIsSaidToBeOne(): void
    {
        $outcome = self::outcome($this->pool(1)->submit(new Call('end', ProcessEnding::Kill)));

        self::assertInstanceOf(WorkerCrashedException::class, $outcome);
        self::assertSame([null, 9, null], [$outcome->exitCode, $outcome->signal, $outcome->error]);
        self::assertStringContainsString('the kernel sends it when memory runs out', $outcome->getMessage());
        self::assertGreaterThan(0, $outcome->memoryPeak);
    }

    private function assertToldHow(TaskPhase $moment, ProcessEnding $ending, mixed $outcome, mixed $key = null): void
    {
        if ($ending === ProcessEnding::Error && $moment === TaskPhase::Serializing) {
            self::assertInstanceOf(UnserializableException::class, $outcome, $ending->value);
            self::assertStringContainsString(ProcessEnding::MESSAGE, $outcome->getMessage());
        } elseif ($ending === ProcessEnding::Error) {
            self::assertInstanceOf(TaskFailedException::class, $outcome, $ending->value);
            self::assertSame(
                [\RuntimeException::class, ProcessEnding::MESSAGE, 1, $key],
                [$outcome->thrown->class, $outcome->thrown->message, $outcome->attempts, $outcome->key],
            );
        } else {
            self::assertInstanceOf(WorkerCrashedException::class, $outcome, $ending->value);
            self::assertSame(
                [$this->known($ending->exitCode()), $ending->signal(), null, 1, $key],
                [$outcome->exitCode, $outcome->signal, $outcome->error, $outcome->attempts, $outcome->key],
            );
        }
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

use PHPUnit\Framework\Attributes\DataProvider;
use Spindle\Worker\TaskFailedException;
use Spindle\Worker\UnserializableException;
use Spindle\Worker\WorkerCrashedException;

/** A task that fails, or ends its worker, fails alone. */
trait TaskFaults
{
    /** @return iterable<string, array{Moment, Ending}> */
    public static function momentsAndEndings(): iterable
    {
        foreach (Moment::cases() as $moment) {
            foreach (Ending::cases() as $ending) {
                yield "{$ending->value} while {$moment->value}" => [$moment, $ending];
            }
        }
    }

    #[DataProvider('momentsAndEndings')]
    public function testASubmittedTaskFailsAloneAndIsToldHow(Moment $moment, Ending $ending): void
    {
        if ($ending->signal() !== null) {
            $this->needsAProcessForEachWorker('a signal ends the tasks of all of them');
        }
        $pool = $this->pool(2);
        $file = $this->path('starts');
        self::assertUsable($pool); // so that tasks travel together
        $futures = [];
        for ($i = 0; $i < 300; ++$i) {
            $futures[] = $pool->submit(new Numbered($i, $file, 0));
        }
        $futures['fragile'] = $pool->submit(new Fragile($moment, $ending));
        for ($i = 300; $i < 600; ++$i) {
            $futures[] = $pool->submit(new Numbered($i, $file, 0));
        }
        $outcomes = self::outcomes($futures);

        $this->assertToldHow($moment, $ending, $outcomes['fragile']);
        unset($outcomes['fragile']);
        // A signal leaves the worker no time to send results that waited for company; those after it have run elsewhere.
        $lost = array_filter($outcomes, static fn(mixed $outcome): bool => $outcome instanceof WorkerCrashedException);
        $numbers = [...array_keys($lost), ...self::numbersOf(array_diff_key($outcomes, $lost))];
        sort($numbers);
        self::assertSame(range(0, 599), $numbers);
        self::assertLessThan($ending->signal() === null ? 0 : 300, max([-1, ...array_keys($lost)]), 'the last one that was lost');
        self::assertSame(array_fill(0, 600, 1), Numbered::starts($file), 'each is started once');
        self::assertUsable($pool);
    }

    #[DataProvider('momentsAndEndings')]
    public function testAMapEndsWithThatOfItsInput(Moment $moment, Ending $ending): void
    {
        $pool = $this->pool(2);
        $input = ['a' => new Fragile($moment, $ending)];
        $thrown = null;
        try {
            iterator_to_array($pool->map($input, Fragile::through(...)));
        } catch (\Throwable $thrown) {
        }

        $this->assertToldHow($moment, $ending, $thrown, 'a');
        self::assertUsable($pool);
    }

    public function testTasksThatEndTheOnlyWorkerOneAfterTheOtherAreToldSoEach(): void
    {
        $pool = $this->pool(1);
        $futures = [];
        for ($i = 0; $i < 10; ++$i) {
            $futures[] = $pool->submit(new Call('end', Ending::ExitWith3));
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

    public function testAnExhaustedMemoryLimitIsToldInTheWordsOfPhp(): void
    {
        $pool = $this->pool(2, memoryLimit: '32M');
        $outcomes = self::outcomes([$pool->submit(new Call('exhaustMemory')), $pool->submit(new Call('square', 3))]);

        self::assertInstanceOf(WorkerCrashedException::class, $outcomes[0]);
        self::assertStringContainsString('Allowed memory size of 33554432 bytes exhausted', (string) $outcomes[0]->error);
        self::assertStringContainsString((string) $outcomes[0]->error, $outcomes[0]->getMessage());
        self::assertSame($this->known(255), $outcomes[0]->exitCode);
        self::assertNull($outcomes[0]->signal);
        self::assertGreaterThan(20 << 20, $outcomes[0]->memoryPeak);
        self::assertSame(9, $outcomes[1]);
        self::assertUsable($pool);
    }

    public function testAKillAsTheKernelSendsItWhenMemoryRunsOutIsSaidToBeOne(): void
    {
        $outcome = self::outcome($this->pool(1)->submit(new Call('end', Ending::Kill)));

        self::assertInstanceOf(WorkerCrashedException::class, $outcome);
        self::assertSame([null, 9, null], [$outcome->exitCode, $outcome->signal, $outcome->error]);
        self::assertStringContainsString('as the kernel sends it when memory runs out', $outcome->getMessage());
        self::assertGreaterThan(0, $outcome->memoryPeak);
    }

    /**
     * @param array<mixed> $results of {@see Numbered}
     *
     * @return list<int>
     */
    protected static function numbersOf(array $results): array
    {
        $numbers = [];
        foreach ($results as $result) {
            self::assertIsInt($result, $result instanceof \Throwable ? $result->getMessage() : 'a result');
            $numbers[] = Numbered::numberOf($result);
        }

        return $numbers;
    }

    private function assertToldHow(Moment $moment, Ending $ending, mixed $outcome, mixed $key = null): void
    {
        if ($ending === Ending::Error && $moment === Moment::Serializing) {
            self::assertInstanceOf(UnserializableException::class, $outcome);
            self::assertStringContainsString(Ending::MESSAGE, $outcome->getMessage());
        } elseif ($ending === Ending::Error) {
            self::assertInstanceOf(TaskFailedException::class, $outcome);
            self::assertSame([\RuntimeException::class, Ending::MESSAGE, 1, $key], [$outcome->thrown->class, $outcome->thrown->message, $outcome->attempts, $outcome->key]);
        } else {
            self::assertInstanceOf(WorkerCrashedException::class, $outcome);
            self::assertSame([$this->known($ending->exitCode()), $ending->signal(), null, 1, $key], [$outcome->exitCode, $outcome->signal, $outcome->error, $outcome->attempts, $outcome->key]);
        }
    }
}

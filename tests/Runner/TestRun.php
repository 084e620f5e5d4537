<?php

declare(strict_types=1);

namespace Spindle\Tests\Runner;

use Spindle\Tests\Scale;

/**
 * Runs every test class in a separate PHPUnit process: several at once, the longest first; the quiet tests alone.
 *
 * See docs/explanation/tests.md for the reasons.
 */
final class TestRun
{
    /** Maximum duration of a class, in seconds. */
    private const DEADLINE = 600.0;
    private const DEADLINE_FULL = 1_800.0;

    private const INTERVAL_US = 50_000;
    private const MAX_SLOWEST = 30;

    /** If more classes have failed, none runs again, because a slow machine is not the cause. */
    private const MAX_REPEATED = 12;

    /** @var list<ClassRun> */
    private array $runs = [];

    /** @var list<ClassResult> */
    private array $results = [];

    /** @var list<string> names of classes that failed at first, and passed when they ran alone */
    private array $onlyAlone = [];

    private int $interrupted = 0;
    /** Null in a nested run: the outer run holds the lock already. */
    private readonly ?QuietLock $lock;
    private readonly int $start;

    public function __construct(
        private readonly Options $options,
        private readonly Screen $screen,
    ) {
        $this->lock = getenv(ClassRun::MARK) === false ? new QuietLock() : null;
        $this->start = hrtime(true);
    }

    /**
     * Returns the exit status: 0 when all tests passed, 1 when a test failed or none was found. After a signal, it is
     * 128 plus the signal's number.
     *
     * @throws RunnerException
     */
    public function run(): int
    {
        $this->endOnSignals();
        $sandbox = Sandbox::detect();
        if (!$sandbox->isAvailable()) {
            $this->screen->line('No sandbox: unshare(1) cannot create namespaces. Ended tests may leave processes.');
        }
        $this->screen->line(\sprintf('Seed: %d (SPINDLE_TEST_SEED=%1$d repeats this run)', Scale::seed()));
        $durations = Durations::load();
        $classes = $durations->longestFirst(TestList::find($this->options->paths, $this->options->full, $sandbox));
        $quiet = array_values(array_filter($classes, static fn(TestClass $class): bool => $class->quiet));
        $parallel = array_values(array_filter($classes, static fn(TestClass $class): bool => !$class->quiet));

        $onWait = fn() => $this->screen->line('Waiting for other test runs on this machine');
        $isInterrupted = fn(): bool => $this->interrupted !== 0;
        $this->lock?->share($onWait, $isInterrupted);
        $this->runAll($parallel, $this->options->shards, $sandbox, \count($classes));
        if ($quiet !== [] && $this->interrupted === 0) {
            if ($this->lock?->acquireAlone($onWait, $isInterrupted) === false) {
                $this->screen->line('Another test run keeps this machine busy: quiet tests may fail.');
            }
            $this->runAll($quiet, 1, $sandbox, \count($classes));
        }
        if ($this->options->repeatsFailed && $this->interrupted === 0) {
            $this->repeatFailed($sandbox, \count($classes));
        }
        $durations->save($this->results);

        return $this->report(\count($classes));
    }

    /** @param list<TestClass> $classes */
    private function runAll(array $classes, int $shards, Sandbox $sandbox, int $all): void
    {
        $deadline = $this->options->full ? self::DEADLINE_FULL : self::DEADLINE;
        while (($classes !== [] || $this->runs !== []) && $this->interrupted === 0) {
            while ($classes !== [] && \count($this->runs) < $shards) {
                $this->runs[] = new ClassRun(array_shift($classes), $sandbox, $this->options->full, $deadline);
            }
            usleep(self::INTERVAL_US);
            $this->runs = array_values(array_filter($this->runs, fn(ClassRun $run): bool => !$this->ends($run, $all)));
            $this->screen->progress($this->runs, \count($this->results), $all, \count($this->failed()));
        }
        array_walk($this->runs, static fn(ClassRun $run) => $run->kill());
        $this->runs = [];
    }

    /** Runs failed classes again, without other load. If a class passes now, this result counts. */
    private function repeatFailed(Sandbox $sandbox, int $all): void
    {
        $failed = $this->failed();
        if ($failed === [] || \count($failed) > self::MAX_REPEATED) {
            return;
        }
        $this->screen->line('The failed classes run again, one after the other');
        $passes = static fn(ClassResult $result): bool => $result->passed();
        $this->results = array_values(array_filter($this->results, $passes));
        $first = \count($this->results);
        $this->runAll(array_column($failed, 'class'), 1, $sandbox, $all);
        foreach (array_filter(\array_slice($this->results, $first), $passes) as $result) {
            $this->onlyAlone[] = $result->class->name();
        }
    }

    private function ends(ClassRun $run, int $all): bool
    {
        $result = $run->poll();
        if ($result !== null) {
            $this->results[] = $result;
            $this->screen->classEnded($result, \count($this->results), $all);
        }

        return $result !== null;
    }

    private function report(int $classes): int
    {
        $counts = new Counts();
        foreach ($this->results as $result) {
            $counts->add($result->counts);
        }
        $failed = $this->failed();
        if ($this->options->slowest) {
            $this->reportSlowest();
        }
        $this->reportSkipped();
        foreach ($this->onlyAlone as $name) {
            $this->screen->line("PASSED ONLY ALONE: {$name}");
        }
        foreach ($failed as $result) {
            $this->screen->line("FAILED: {$result->class->name()}: {$result->problem}");
            if (\count($this->results) > 1) {
                $this->screen->line($result->failures());
            }
        }
        $this->screen->line(\sprintf(
            'Classes: %d, time: %.0f s, processor time: %.1f min',
            \count($this->results),
            (hrtime(true) - $this->start) / 1e9,
            array_sum(array_map(static fn(ClassResult $result): float => $result->cpu, $this->results)) / 60,
        ));
        if ($this->interrupted > 0) {
            $ended = \count($this->results);
            $this->screen->verdict("Interrupted after {$ended} of {$classes} classes", false);

            return 128 + $this->interrupted;
        }
        $passed = $failed === [] && $counts->tests > 0;
        $this->screen->verdict($counts->tests > 0 ? $counts->closingLine() : 'No tests executed!', $passed);

        return $passed ? 0 : 1;
    }

    private function reportSlowest(): void
    {
        $results = $this->results;
        usort($results, static fn(ClassResult $a, ClassResult $b): int => $b->seconds <=> $a->seconds);
        $this->screen->line("\n| class | tests | seconds | CPU seconds |\n|---|---|---|---|");
        foreach (\array_slice($results, 0, self::MAX_SLOWEST) as $result) {
            $tests = $result->counts->tests;
            $name = $result->class->name();
            $this->screen->line(\sprintf('| %s | %d | %.1f | %.1f |', $name, $tests, $result->seconds, $result->cpu));
        }
        $rounds = array_merge(...array_map(static fn(ClassResult $result): array => $result->rounds, $results));
        $this->screen->line("\n" . implode("\n", $rounds));
    }

    private function reportSkipped(): void
    {
        $reasons = array_count_values(array_map(
            static fn(string $test): string => (string) preg_replace('/ \(Spindle.*/s', '', $test),
            array_merge(...array_map(static fn(ClassResult $result): array => $result->skipped(), $this->results)),
        ));
        foreach ($reasons as $reason => $tests) {
            $this->screen->line("Skipped ({$tests}): {$reason}");
        }
    }

    /** @return list<ClassResult> */
    private function failed(): array
    {
        return array_values(array_filter($this->results, static fn(ClassResult $result): bool => !$result->passed()));
    }

    private function endOnSignals(): void
    {
        pcntl_async_signals(true);
        foreach ([\SIGINT, \SIGTERM, \SIGHUP] as $signal) {
            pcntl_signal($signal, function (int $received): void {
                $this->interrupted = $received;
            });
        }
        pcntl_signal(\SIGCHLD, static fn() => null, false); // interrupts usleep() when a class ends
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Bench\Tasks;

use Spindle\Bench\Support\ProcessStatus;
use Spindle\Bench\Support\Statistics;
use Spindle\Bench\Support\Usage;

/**
 * Measures one contestant once, and checks its results.
 *
 * Each measurement returns its figure, and whether all results are present and right.
 *
 * @phpstan-type Figures array<string, bool|int|float|list<array<string, int|float>>>
 */
final readonly class Measure
{
    /** Pending objects before results are awaited. */
    private const MAX_PENDING = 1_000;

    private const MEGABYTE = 1 << 20;

    public function __construct(
        private TaskContestant $contestant,
        private int $count,
        private int $workers,
        private int $bytes,
        private int $iterations,
        private bool $closure,
    ) {}

    /** @return Figures with the keys figure and right */
    public function of(TaskMeasurement $what): array
    {
        if ($what->isCold()) {
            return match ($what) {
                TaskMeasurement::Cpu => $this->cpu(),
                TaskMeasurement::Start => $this->start(),
                default => $this->death(),
            };
        }
        $pool = $this->contestant->pool($this->workers);
        $begin = hrtime(true);
        self::workersOf($pool, $this->workers);
        $start = self::since($begin);
        $running = Usage::ofTree();
        $figures = match ($what) {
            TaskMeasurement::Single => $this->single($pool),
            TaskMeasurement::Objects => $this->objects($pool),
            TaskMeasurement::Mix => $this->mix($pool),
            TaskMeasurement::Echo => $this->echo($pool),
            TaskMeasurement::Memory => $this->memory($pool),
            default => $this->bulk($pool),
        };
        $running = Usage::ofTree() - $running;
        $pool->close();

        return $figures + ['start' => $start, 'cpu running' => $running];
    }

    /** @return Figures tasks per second */
    private function bulk(TaskPool $pool): array
    {
        return $this->numbered(
            $pool,
            Work::same(...),
            static fn(int $count, float $seconds): float => $count / $seconds,
        );
    }

    /** @return Figures seconds */
    private function mix(TaskPool $pool): array
    {
        return $this->numbered($pool, Work::burn(...), static fn(int $count, float $seconds): float => $seconds);
    }

    /**
     * Measures tasks that return their number, to detect lost and duplicate results.
     *
     * @param \Closure(int): int          $task
     * @param \Closure(int, float): float $figure
     *
     * @return Figures
     */
    private function numbered(TaskPool $pool, \Closure $task, \Closure $figure): array
    {
        [$results, $sum] = [0, 0];
        $name = [Work::class, (new \ReflectionFunction($task))->getName()];
        \assert(\is_callable($name));
        $inputs = range(0, $this->count - 1);
        $begin = hrtime(true);
        if ($pool instanceof IterablePool) {
            /** @var int $number */
            foreach ($pool->results($inputs, $name) as $number) {
                ++$results;
                $sum += $number;
            }
        } else {
            $pool->each($inputs, $name, static function (mixed $number) use (&$results, &$sum): void {
                /** @var int $number */
                ++$results;
                $sum += $number;
            });
        }
        $seconds = self::since($begin);

        return [
            'figure' => $figure($this->count, $seconds),
            'seconds' => $seconds,
            'results' => $results,
            'right' => $results === $this->count && $sum === self::sumOfNumbersBelow($this->count),
        ];
    }

    /** @return Figures microseconds */
    private function single(TaskPool $pool): array
    {
        $pool = self::submitting($pool);
        $task = [Work::class, 'nothing'];
        if ($this->closure) {
            $task = static fn(): int => 1;
        }
        [$times, $sum, $begin] = [[], 0, hrtime(true)];
        for ($i = 0; $i < $this->count; ++$i) {
            $then = hrtime(true);
            $sum += $pool->submit($task)->await() === 1 ? 1 : 0;
            $times[] = (hrtime(true) - $then) / 1e3;
        }

        return [
            'figure' => Statistics::of($times)->median,
            'rate' => $this->count / self::since($begin),
            'results' => \count($times),
            'right' => $sum === $this->count,
        ];
    }

    /** @return Figures tasks per second */
    private function objects(TaskPool $pool): array
    {
        $pool = self::submitting($pool);
        /** @var \SplQueue<\Amp\Future<mixed>> $waiting */
        $waiting = new \SplQueue();
        [$results, $sum, $begin] = [0, 0, hrtime(true)];
        $takeOne = static function () use ($waiting, &$results, &$sum): void {
            $number = $waiting->dequeue()->await();
            \assert(\is_int($number));
            $sum += $number;
            ++$results;
        };
        foreach ($this->numbers() as $number) {
            if (\count($waiting) === self::MAX_PENDING) {
                $takeOne();
            }
            $waiting->enqueue($pool->submit(new Numbered($number)));
        }
        while (!$waiting->isEmpty()) {
            $takeOne();
        }

        return [
            'figure' => $this->count / self::since($begin),
            'results' => $results,
            'right' => $results === $this->count && $sum === self::sumOfNumbersBelow($this->count),
        ];
    }

    /** @return Figures strings per second */
    private function echo(TaskPool $pool): array
    {
        $rest = str_repeat('spindle ', intdiv($this->bytes, 8));
        $strings = (function () use ($rest): \Generator {
            foreach ($this->numbers() as $number) {
                yield \sprintf('%016d', $number) . $rest;
            }
        })();
        [$results, $sum, $wrong, $begin] = [0, 0, 0, hrtime(true)];
        $pool->each(
            $strings,
            [Work::class, 'echo'],
            static function (mixed $string) use ($rest, &$results, &$sum, &$wrong): void {
                \assert(\is_string($string));
                ++$results;
                $sum += (int) substr($string, 0, 16);
                $wrong += \strlen($string) === 16 + \strlen($rest) && substr_compare($string, $rest, 16) === 0 ? 0 : 1;
            },
        );

        return [
            'figure' => $this->count / self::since($begin),
            'results' => $results,
            'right' => $results === $this->count && $wrong === 0 && $sum === self::sumOfNumbersBelow($this->count),
        ];
    }

    /** @return Figures peak of resident memory in megabytes, and its value at each tenth of the run */
    private function memory(TaskPool $pool): array
    {
        $process = ProcessStatus::ofThis();
        [$results, $sum, $marks, $begin, $tenth] = [0, 0, [], hrtime(true), max(1, intdiv($this->count, 10))];
        $pool->each(
            $this->numbers(),
            [Work::class, 'same'],
            function (mixed $number) use ($process, $begin, $tenth, &$results, &$sum, &$marks): void {
                \assert(\is_int($number));
                $sum += $number;
                if (++$results % $tenth === 0 || $results === $this->count) {
                    $marks[] = [
                        'tasks' => $results,
                        'rate' => $results / self::since($begin),
                        'resident' => $process->memory() / self::MEGABYTE,
                        'peak' => $process->peak() / self::MEGABYTE,
                        'php' => memory_get_peak_usage() / self::MEGABYTE,
                    ];
                }
            },
        );
        [$first, $last] = [$marks[0] ?? [], $marks[array_key_last($marks) ?? 0] ?? []];

        return [
            'figure' => $last['peak'] ?? 0.0,
            'first peak' => $first['peak'] ?? 0.0,
            'first php' => $first['php'] ?? 0.0,
            'php' => $last['php'] ?? 0.0,
            'rate' => $last['rate'] ?? 0.0,
            'marks' => $marks,
            'results' => $results,
            'right' => $results === $this->count && $sum === self::sumOfNumbersBelow($this->count),
        ];
    }

    /** @return Figures seconds */
    private function cpu(): array
    {
        [$results, $total, $begin] = [[], 0.0, hrtime(true)];
        $pool = $this->contestant->pool($this->workers);
        $pool->each(
            array_fill(0, $this->count, $this->iterations),
            [Work::class, 'calculate'],
            static function (mixed $result) use (&$results, &$total): void {
                \assert(\is_float($result));
                $results[] = $result;
                $total += $result;
            },
        );
        $seconds = self::since($begin);
        $pool->close();

        return [
            'figure' => $seconds,
            'total' => $total,
            'results' => \count($results),
            'right' => \count($results) === $this->count && \count(array_unique($results, \SORT_REGULAR)) === 1,
        ];
    }

    /** @return Figures milliseconds to the result of one task; to the first and last result of one task per worker */
    private function start(): array
    {
        [$one, $first, $last, $right] = [[], [], [], true];
        for ($i = 0; $i <= $this->count; ++$i) {
            $begin = hrtime(true);
            $pool = $this->contestant->pool($this->workers);
            $pool->each([1], [Work::class, 'same'], static function () use ($begin, $i, &$one): void {
                $one[$i] = 1e3 * self::since($begin);
            });
            $pool->close();
            [$begin, $times, $pause] = [hrtime(true), [], 20];
            $pool = $this->contestant->pool($this->workers);
            $pool->each(
                array_fill(0, $this->workers, 1000 * $pause),
                [Work::class, 'pause'],
                static function () use ($begin, &$times): void {
                    $times[] = 1e3 * self::since($begin);
                },
            );
            $pool->close();
            $right = $right && \count($times) === $this->workers;
            [$first[$i], $last[$i]] = [min([\INF, ...$times]) - $pause, max([0.0, ...$times]) - $pause];
        }
        // The first measurement includes one-time costs of this process.
        unset($one[0], $first[0], $last[0]);

        return [
            'figure' => Statistics::of($one)->median,
            'first' => Statistics::of($first)->median,
            'last' => Statistics::of($last)->median,
            'results' => \count($one),
            'right' => $right && \count($one) === $this->count,
        ];
    }

    /** @return Figures milliseconds */
    private function death(): array
    {
        [$times, $pool] = [[], self::submitting($this->contestant->pool($this->workers))];
        $file = (string) tempnam(sys_get_temp_dir(), 'spindle-death-');
        try {
            for ($i = 0; $i < $this->count; ++$i) {
                self::workersOf($pool, $this->workers);
                try {
                    $pool->submit(new Call([Work::class, 'killSelf'], $file))->await();
                } catch (\Exception) {
                    $times[] = (hrtime(true) - (int) file_get_contents($file)) / 1e6;
                }
            }
            $pool->close();
        } finally {
            unlink($file);
        }

        return [
            'figure' => $times === [] ? 0.0 : Statistics::of($times)->median,
            'slowest' => max([0.0, ...$times]),
            'results' => \count($times),
            'right' => \count($times) === $this->count,
        ];
    }

    /** Starts all workers of a pool. */
    private static function workersOf(TaskPool $pool, int $workers): void
    {
        $pool->each(array_fill(0, 2 * $workers, 2_000), [Work::class, 'pause'], static function (): void {});
    }

    /** @return \Generator<int, int> */
    private function numbers(): \Generator
    {
        for ($i = 0; $i < $this->count; ++$i) {
            yield $i => $i;
        }
    }

    private static function submitting(TaskPool $pool): SubmittingPool
    {
        return $pool instanceof SubmittingPool
            ? $pool
            : throw new \LogicException('The pool does not accept single tasks');
    }

    private static function sumOfNumbersBelow(int $count): int
    {
        return intdiv($count * ($count - 1), 2);
    }

    /** @return float seconds */
    private static function since(int $begin): float
    {
        return (hrtime(true) - $begin) / 1e9;
    }
}

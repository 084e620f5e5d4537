<?php

declare(strict_types=1);

namespace Spindle\Bench\Remote;

use Spindle\Bench\Http\ProcessTree;
use Spindle\Bench\Support\ProcessStatus;
use Spindle\Bench\Tasks\Work;
use Spindle\Worker\Executor;

use function Amp\async;
use function Amp\Future\await;

/** Submits no-op tasks, and checks their results. */
final readonly class Script
{
    /** Fibers that submit concurrently. */
    public const CONCURRENT_FIBERS = 64;

    /** Divisors of the number of tasks: for the warm-up, for single tasks, and for the concurrent fibers. */
    private const WARM_UP_DIVISOR = 10;
    private const SINGLE_DIVISOR = 50;
    private const CONCURRENT_DIVISOR = 5;

    /**
     * @param int $agent  id of the agent's process; 0 when this process has the workers
     * @param int $engine id of the engine's process; 0 for none
     */
    public function __construct(private Executor $executor, private int $agent, private int $engine) {}

    /** @return array<string, bool|int|float> */
    public function run(Measurement $what, int $tasks): array
    {
        $this->warmUp(max(1, intdiv($tasks, self::WARM_UP_DIVISOR)));
        $figures = $what === Measurement::Single
            ? $this->single(
                max(1, intdiv($tasks, self::SINGLE_DIVISOR)),
                max(1, intdiv($tasks, self::CONCURRENT_DIVISOR)),
            )
            : $this->bulk($tasks);
        $this->executor->close();

        return $figures;
    }

    /** Runs tasks until all workers have started and the agent has measured the tasks' speed. */
    private function warmUp(int $tasks): void
    {
        foreach ($this->executor->mapUnordered(
            array_fill(0, 2 * Rig::WORKERS, 2_000),
            [Work::class, 'pause'],
        ) as $ignored);
        foreach ($this->executor->mapUnordered(range(1, $tasks), [Work::class, 'same']) as $ignored);
    }

    /** @return array<string, bool|int|float> */
    private function bulk(int $tasks): array
    {
        [$results, $sum, $before, $begin] = [0, 0, $this->cpu(), hrtime(true)];
        /** @var int $number */
        foreach ($this->executor->mapUnordered(self::numbers($tasks), [Work::class, 'same']) as $number) {
            ++$results;
            $sum += $number;
        }
        $seconds = self::since($begin);
        $after = $this->cpu();
        $figures = [
            'figure' => $tasks / $seconds,
            'seconds' => $seconds,
            'count' => $tasks,
            'results' => $results,
            'right' => $results === $tasks && $sum === intdiv($tasks * ($tasks - 1), 2),
        ];
        foreach ($after as $who => $cpu) {
            $figures["cpu {$who}"] = ($cpu - $before[$who]) / $tasks;
        }

        return $figures;
    }

    /**
     * @return array<string, bool|int|float> milliseconds from submit() to the result, and the rate of concurrent fibers
     */
    private function single(int $tasks, int $crowded): array
    {
        [$times, $sum] = [[], 0];
        for ($i = 0; $i < $tasks; ++$i) {
            $begin = hrtime(true);
            $sum += $this->executor->submit([Work::class, 'nothing'])->await() === 1 ? 1 : 0;
            $times[] = 1e3 * self::since($begin);
        }
        $figures = Times::of($times)->figures();

        $crowd = $this->crowd($crowded);

        return [
            'figure' => $figures['p50'],
            'crowd' => $crowd ?? 0.0,
            'right' => $sum === $tasks && $crowd !== null,
        ] + $figures;
    }

    /**
     * Runs concurrent fibers, each of which submits its next task after a result.
     *
     * @return float|null tasks per second; null after a wrong result
     */
    private function crowd(int $tasks): ?float
    {
        [$left, $sum, $begin] = [$tasks, 0, hrtime(true)];
        $one = function () use (&$left, &$sum): void {
            while ($left-- > 0) {
                $sum += $this->executor->submit([Work::class, 'nothing'])->await() === 1 ? 1 : 0;
            }
        };
        await(array_map(static fn() => async($one), range(1, self::CONCURRENT_FIBERS)));

        return $sum === $tasks ? $tasks / self::since($begin) : null;
    }

    /** @return array<string, float> CPU seconds so far: this process; workers and agent; engine */
    private function cpu(): array
    {
        $own = ProcessStatus::ofThis()->cpu();
        $here = array_sum((new ProcessTree((int) getmypid()))->cpu()) - $own;

        return [
            'script' => $own,
            'workers' => $this->agent === 0 ? max(0.0, $here) : array_sum((new ProcessTree($this->agent))->cpu()),
            'engine' => $this->engine === 0 ? 0.0 : array_sum((new ProcessTree($this->engine))->cpu()),
        ];
    }

    /** @return \Generator<int, int> */
    private static function numbers(int $count): \Generator
    {
        for ($i = 0; $i < $count; ++$i) {
            yield $i => $i;
        }
    }

    /** @return float seconds */
    private static function since(int $begin): float
    {
        return (hrtime(true) - $begin) / 1e9;
    }
}

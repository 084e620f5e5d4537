<?php

declare(strict_types=1);

namespace Spindle\Bench\Tasks;

/**
 * The same work in plain forks without a pool: each fork has its share from the start, and sends its results at the
 * end.
 *
 * Inputs must be numbers from 0. Each share has the same number of long mixed tasks.
 */
final readonly class PlainForks implements TaskPool
{
    public function __construct(private int $forks) {}

    public function each(iterable $inputs, callable $task, \Closure $take): void
    {
        $shares = array_fill(0, $this->forks, []);
        foreach ($inputs as $input) {
            \assert(\is_int($input));
            $shares[intdiv($input, Work::TASKS_PER_LONG_TASK) % $this->forks][] = $input;
        }
        foreach (array_map(static fn(array $share) => self::start($share, $task), $shares) as $end) {
            /** @var list<mixed> $results */
            $results = unserialize((string) stream_get_contents($end));
            array_walk($results, static fn(mixed $result) => $take($result));
        }
        for ($i = 0; $i < $this->forks; ++$i) {
            pcntl_wait($status);
        }
    }

    public function close(): void {}

    /**
     * @template T
     *
     * @param list<T>            $share
     * @param callable(T): mixed $task
     *
     * @return resource stream with the fork's results
     */
    private static function start(array $share, callable $task): mixed
    {
        [$here, $there] = Forks::socketPair();
        Forks::start(static function () use ($share, $task, $here, $there): void {
            fclose($here);
            Forks::write($there, serialize(array_map($task, $share)));
        });
        fclose($there);

        return $here;
    }
}

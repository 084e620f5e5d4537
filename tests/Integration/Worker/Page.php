<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Worker;

use Spindle\Tests\Processes;
use Spindle\Tests\SharedMemory;
use Spindle\Tests\Text;
use Spindle\Worker\TaskFailedException;
use Spindle\Worker\WorkerContext;
use Spindle\Worker\WorkerPool;
use Spindle\Worker\WorkerPoolOptions;

/** The answer of a web server that uses pools. */
final class Page
{
    /** @return array<string, mixed> */
    public static function answer(): array
    {
        $before = self::surroundings();
        $answer = ['sapi' => \PHP_SAPI];
        foreach ([WorkerContext::Process, WorkerContext::Fork] as $context) {
            $answer[$context->name] = self::work($context);
        }

        return $answer + ['left' => array_map(array_diff(...), self::surroundings(), $before)];
    }

    /** @return list<string> sockets of this process */
    public static function sockets(): array
    {
        $targets = array_map(
            static fn(string $descriptor): string => (string) @readlink("/proc/self/fd/{$descriptor}"),
            Text::names('/proc/self/fd'),
        );

        return array_values(array_filter(
            $targets,
            static fn(string $target): bool => str_starts_with($target, 'socket:'),
        ));
    }

    /** @return array<string, mixed> */
    private static function work(WorkerContext $context): array
    {
        $pool = new WorkerPool(2, options: new WorkerPoolOptions(context: $context));
        $factor = 2;
        $doubles = iterator_to_array($pool->map(
            ['a' => 1, 'b' => 2, 'c' => 3],
            static fn(int $number): int => $factor * $number,
        ));
        $thrown = null;
        try {
            $pool->submit(static fn() => throw new \DomainException('of a task'))->await();
        } catch (TaskFailedException $failed) {
            $thrown = [$failed->thrown->class, $failed->getPrevious()?->getMessage()];
        }
        $sapi = $pool->submit(static fn(): string => \PHP_SAPI)->await();
        $request = $pool->submit(
            static fn(): array => array_intersect_key(getenv(), ['QUERY_STRING' => 0, 'SCRIPT_FILENAME' => 0]),
        )->await();
        $shared = array_intersect($pool->submit(self::sockets(...))->await(), self::sockets());
        $pool->close();

        return [
            'doubles' => $doubles,
            'thrown' => $thrown,
            'sapi' => $sapi,
            'request' => $request,
            'shared' => $shared,
        ];
    }

    /** @return list<array<int|string, string>> */
    private static function surroundings(): array
    {
        gc_collect_cycles();

        return [Processes::childrenOf((int) getmypid()), SharedMemory::segments(), self::sockets()];
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Bench\Tasks;

use Amp\Parallel\Worker\ContextWorkerPool;
use Spindle\Bench\Support\Package;
use Spindle\Bench\Support\UsageException;
use Spindle\SpindleException;
use Spindle\Worker\WorkerContext;
use Spindle\Worker\WorkerPool;
use Spindle\Worker\WorkerPoolOptions;

/** The contestants that run in PHP, by name. */
final class TaskContestants
{
    /**
     * @param string $pumice folder of Pumice's source; '' for none
     *
     * @throws UsageException when the name is unknown
     */
    public static function named(string $name, string $pumice = ''): TaskContestant
    {
        $all = self::all($pumice);

        return $all[$name]
            ?? throw new UsageException(
                "contestant '{$name}' is not allowed; give some of " . implode(', ', array_keys($all)),
            );
    }

    /** Returns why workers of this kind are not available; null when they are. */
    public static function missing(WorkerContext $context): ?string
    {
        if ($context === WorkerContext::Process) {
            return null;
        }
        try {
            $pool = new WorkerPool(1, options: new WorkerPoolOptions(context: $context));
            $pool->submit('getmypid')->await();
            $pool->close();
        } catch (SpindleException $exception) {
            return $exception->getMessage();
        }

        return null;
    }

    /** @return array<string, TaskContestant> */
    private static function all(string $pumice): array
    {
        $all = [];
        foreach (WorkerContext::cases() as $context) {
            $name = strtolower($context->name);
            $label = $context === WorkerContext::Process ? 'Spindle' : "Spindle, {$name}";
            $all["spindle-{$name}"] = new TaskContestant(
                $label,
                static fn(int $workers) => new SpindleTasks($workers, $context),
            );
            $all["spindle-{$name}-map"] = new TaskContestant(
                "{$label}, map",
                static fn(int $workers) => new SpindleTasks($workers, $context, inOrder: true),
            );
        }

        return $all + [
            'spindle-tasks' => new TaskContestant(
                'Spindle, a TaskGroup',
                static fn(int $workers) => new SpindleTaskList($workers),
            ),
            'amp' => new TaskContestant(
                Package::label('amphp/parallel'),
                static fn(int $workers) => new AmpTasks($workers),
                Package::missing('amphp/parallel', ContextWorkerPool::class),
            ),
            'forks' => new TaskContestant(
                'plain forks, no pool',
                static fn(int $workers) => new PlainForks($workers),
                Forks::missing(),
            ),
            'socket' => new TaskContestant(
                'socket pair, one at a time',
                static fn() => new SocketLoop(),
                Forks::missing(),
            ),
            'sequential' => new TaskContestant('one after the other', static fn() => new Sequential()),
            'process-per-task' => new TaskContestant(
                'process per task',
                static fn(int $workers) => new ProcessPerTask($workers),
            ),
            'pumice' => new TaskContestant(
                'Pumice',
                static fn(int $workers) => new PumiceTasks($workers, $pumice),
                PumiceTasks::missing($pumice),
            ),
        ];
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Bench\Contestant;

use Spindle\Bench\Support\UsageException;
use Spindle\Command\StartMethod;
use Spindle\Command\TaskRunner;

/** All contestants, by their option names. */
final class Contestants
{
    public const LIMIT = 'limit';

    /** Environment variable with the path of the original TaskRunner.php, to measure it too. */
    public const TASK_RUNNER = 'SPINDLE_BENCH_TASK_RUNNER';

    /** @return array<string, Contestant> */
    public static function all(): array
    {
        return [
            'spindle' => new SpindlePool(StartMethod::Auto),
            'spindle-posix_spawn' => new SpindlePool(StartMethod::PosixSpawn),
            'spindle-proc_open' => new SpindlePool(StartMethod::ProcOpen),
            'drop-in' => new TaskRunnerApi('Spindle, its TaskRunner', TaskRunner::class),
            'for-loop' => new ForLoopExec(),
            'taskrunner.php' => new TaskRunnerApi(
                'TaskRunner.php',
                'TaskRunner\TaskRunner',
                (string) getenv(self::TASK_RUNNER),
            ),
            'taskrunner.php-pool' => new TaskRunnerProcessPool(
                'TaskRunner\ProcessPool',
                (string) getenv(self::TASK_RUNNER),
            ),
        ] + self::peers() + [self::LIMIT => new Limit()];
    }

    /** @return non-empty-array<string, Contestant> default peers of Spindle */
    public static function peers(): array
    {
        return [
            'proc_open' => new ProcOpenPool(),
            'json-lines' => new JsonLinesRunner(),
            'symfony' => new SymfonyProcess(),
            'amp' => new AmpProcess(),
            'react' => new ReactProcess(),
            'parallel' => new GnuParallel(),
            'xargs' => new Xargs(),
        ];
    }

    /** @throws UsageException when the name is unknown */
    public static function named(string $name): Contestant
    {
        $all = self::all();

        return $all[$name]
            ?? throw new UsageException(
                "contestant '{$name}' is not allowed; give some of " . implode(', ', array_keys($all)),
            );
    }

    public static function isAvailable(string $name): bool
    {
        return self::named($name)->missing() === null;
    }

    /**
     * @return string the name
     *
     * @throws UsageException when the name is unknown, or the contestant is not available
     */
    public static function checked(string $name): string
    {
        $missing = self::named($name)->missing();

        return $missing === null
            ? $name
            : throw new UsageException("contestant '{$name}' is not available: {$missing}");
    }
}

<?php

declare(strict_types=1);

/*
 * The child process of Spindle\Bench\Contestant\JsonLinesRunner.
 *
 *     json-lines-pool.php TASKS CONCURRENCY
 *
 * Reads tasks as lines {"id", "cmd"} from a file; writes results as lines {"id", "status", "stdout", "stderr"}.
 */

use Spindle\Bench\Support\InProcessPool;

require __DIR__ . '/Support/InProcessPool.php';

/** @var array{string, string, string} $argv */
[, $file, $concurrency] = $argv;

$tasks = static function () use ($file): Generator {
    foreach (new SplFileObject($file) as $line) {
        if (is_string($line) && $line !== '') {
            /** @var array{id: int, cmd: string} $task */
            $task = json_decode($line, true, flags: JSON_THROW_ON_ERROR);
            yield $task['id'] => $task['cmd'];
        }
    }
};

$pool = new InProcessPool(
    (int) $concurrency,
    static function (int $id, int $status, string $stdout, string $stderr): void {
        echo json_encode(compact('id', 'status', 'stdout', 'stderr'), JSON_THROW_ON_ERROR), "\n";
    },
);
$pool->run($tasks());

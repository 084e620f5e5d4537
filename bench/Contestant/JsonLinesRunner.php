<?php

declare(strict_types=1);

namespace Spindle\Bench\Contestant;

use Spindle\Bench\Support\Tally;
use Spindle\Bench\Support\Workload;

/**
 * The architecture of TaskRunner.php: all tasks are written to a file, a second PHP process runs them in its pool, and
 * results come back as JSON lines.
 */
final readonly class JsonLinesRunner implements Contestant
{
    public function label(): string
    {
        return 'proc_open pool behind JSON lines';
    }

    public function missing(): ?string
    {
        return null;
    }

    public function run(Workload $workload, int $concurrency, Tally $tally): void
    {
        $tasks = tmpfile();
        \assert($tasks !== false);
        foreach ($workload->lines() as $id => $cmd) {
            fwrite($tasks, json_encode(['id' => $id, 'cmd' => $cmd], \JSON_THROW_ON_ERROR) . "\n");
        }
        $pool = [
            \PHP_BINARY,
            \dirname(__DIR__) . '/json-lines-pool.php',
            stream_get_meta_data($tasks)['uri'] ?? '',
            (string) $concurrency,
        ];
        $process = proc_open($pool, [1 => ['pipe', 'w']], $pipes);
        \assert($process !== false);
        /** @var array{1: resource} $pipes */
        while (($line = fgets($pipes[1])) !== false) {
            /** @var array{id: int, status: int, stdout: string} $result */
            $result = json_decode($line, true, flags: \JSON_THROW_ON_ERROR);
            $tally->result($result['id'], $result['status'], $result['stdout']);
        }
        proc_close($process);
    }
}

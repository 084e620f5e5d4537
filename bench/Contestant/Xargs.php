<?php

declare(strict_types=1);

namespace Spindle\Bench\Contestant;

use Spindle\Bench\Support\Program;
use Spindle\Bench\Support\Tally;
use Spindle\Bench\Support\Workload;

/** xargs. It captures nothing: all commands write into one pipe. So xargs has less work than a pool. */
final readonly class Xargs implements Contestant
{
    public function label(): string
    {
        return 'xargs -P';
    }

    public function missing(): ?string
    {
        return Program::find('xargs') === null ? 'xargs is not on PATH' : null;
    }

    public function run(Workload $workload, int $concurrency, Tally $tally): void
    {
        $command = ['xargs', '-0', '-P', (string) $concurrency, '-n', '1', 'sh', '-c'];
        [$status, $output] = Program::run($command, $workload->lines(), "\0");
        $tally->allResults(\strlen($output), $status === 0 ? 0 : 1);
    }
}

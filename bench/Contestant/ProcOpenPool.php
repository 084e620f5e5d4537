<?php

declare(strict_types=1);

namespace Spindle\Bench\Contestant;

use Spindle\Bench\Support\InProcessPool;
use Spindle\Bench\Support\Tally;
use Spindle\Bench\Support\Workload;

final readonly class ProcOpenPool implements Contestant
{
    public function label(): string
    {
        return 'in-process proc_open pool';
    }

    public function missing(): ?string
    {
        return null;
    }

    public function run(Workload $workload, int $concurrency, Tally $tally): void
    {
        $ended = static fn(int $number, int $exitCode, string $stdout) => $tally->result($number, $exitCode, $stdout);
        (new InProcessPool($concurrency, $ended))->run($workload->lines());
    }
}

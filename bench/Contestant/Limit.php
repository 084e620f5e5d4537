<?php

declare(strict_types=1);

namespace Spindle\Bench\Contestant;

use Spindle\Bench\Support\LimitProgram;
use Spindle\Bench\Support\Tally;
use Spindle\Bench\Support\Workload;

/** The limit program. It measures its own time, without its start. No other contestant has this advantage. */
final readonly class Limit implements Contestant
{
    public function label(): string
    {
        return 'limit (C, posix_spawn)';
    }

    public function missing(): ?string
    {
        return LimitProgram::missing();
    }

    public function run(Workload $workload, int $concurrency, Tally $tally): void
    {
        $result = LimitProgram::run($workload->count, $concurrency, ['-'], $workload->lines());
        $tally->allResults($result->bytes, $result->failed);
        $tally->setSeconds($workload->count / $result->rate);
    }
}

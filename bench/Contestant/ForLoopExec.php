<?php

declare(strict_types=1);

namespace Spindle\Bench\Contestant;

use Spindle\Bench\Support\Tally;
use Spindle\Bench\Support\Workload;

/** Runs one command after another. */
final readonly class ForLoopExec implements Contestant
{
    public function label(): string
    {
        return 'shell_exec in a loop';
    }

    public function missing(): ?string
    {
        return null;
    }

    public function run(Workload $workload, int $concurrency, Tally $tally): void
    {
        foreach ($workload->lines() as $number => $line) {
            $tally->result($number, 0, (string) shell_exec($line));
        }
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Bench\Contestant;

use Spindle\Bench\Support\Program;
use Spindle\Bench\Support\Tally;
use Spindle\Bench\Support\Workload;

/** GNU parallel. It keeps the outputs of its jobs apart, as a pool does. */
final readonly class GnuParallel implements Contestant
{
    public function label(): string
    {
        return 'GNU parallel';
    }

    public function missing(): ?string
    {
        return Program::find('parallel') === null ? 'GNU parallel is not on PATH' : null;
    }

    public function run(Workload $workload, int $concurrency, Tally $tally): void
    {
        putenv('PARALLEL_SHELL=/bin/sh');
        [$failed, $output] = Program::run(
            ['parallel', '--plain', '--will-cite', '-j', (string) $concurrency],
            $workload->lines(),
        );
        $tally->allResults(\strlen($output), $failed);
    }
}

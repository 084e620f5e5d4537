<?php

declare(strict_types=1);

namespace Spindle\Bench\Contestant;

use Amp\Process\Process;
use Spindle\Bench\Support\Package;
use Spindle\Bench\Support\Tally;
use Spindle\Bench\Support\Workload;

use function Amp\async;
use function Amp\ByteStream\buffer;
use function Amp\Future\await;

/** One fiber per concurrent command. Each fiber takes the next line when its command has ended. */
final readonly class AmpProcess implements Contestant
{
    public function label(): string
    {
        return Package::label('amphp/process');
    }

    public function missing(): ?string
    {
        return Package::missing('amphp/process', Process::class);
    }

    public function run(Workload $workload, int $concurrency, Tally $tally): void
    {
        $lines = $workload->lines();
        $fiber = static function () use ($lines, $tally): void {
            while ($lines->valid()) {
                [$number, $line] = [$lines->key(), $lines->current()];
                $lines->next();
                $process = Process::start($line);
                $stdout = buffer($process->getStdout());
                $tally->result($number, $process->join(), $stdout);
            }
        };
        await(array_map(static fn() => async($fiber), range(1, $concurrency)));
    }
}

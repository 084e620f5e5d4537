<?php

declare(strict_types=1);

namespace Spindle\Bench\Contestant;

use Spindle\Bench\Support\Tally;
use Spindle\Bench\Support\Workload;

/** The pool of the original TaskRunner.php, inside the calling process. */
final readonly class TaskRunnerProcessPool implements Contestant
{
    public function __construct(private string $class, private string $file) {}

    public function label(): string
    {
        return 'TaskRunner.php, its ProcessPool';
    }

    public function missing(): ?string
    {
        return is_file($this->file) ? null : "there is no file '{$this->file}'";
    }

    public function run(Workload $workload, int $concurrency, Tally $tally): void
    {
        require_once $this->file;
        $pool = new ($this->class)($concurrency);
        [$addJob, $waitFinish] = [[$pool, 'addJob'], [$pool, 'waitFinish']];
        \assert(\is_callable($addJob) && \is_callable($waitFinish));
        $ended = static fn(int $number, int $status, string $stdout) => $tally->result($number, $status, $stdout);
        foreach ($workload->lines() as $number => $line) {
            $addJob($number, $line, $ended);
        }
        $waitFinish();
    }
}

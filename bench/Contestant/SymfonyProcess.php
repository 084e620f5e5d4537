<?php

declare(strict_types=1);

namespace Spindle\Bench\Contestant;

use Spindle\Bench\Support\Package;
use Spindle\Bench\Support\Tally;
use Spindle\Bench\Support\Workload;
use Symfony\Component\Process\Process;

/** Symfony's processes have no events, so their pool polls, at the interval of the component's own `wait()`. */
final readonly class SymfonyProcess implements Contestant
{
    private const POLL_MICROSECONDS = 1000;

    public function label(): string
    {
        return Package::label('symfony/process');
    }

    public function missing(): ?string
    {
        return Package::missing('symfony/process', Process::class);
    }

    public function run(Workload $workload, int $concurrency, Tally $tally): void
    {
        $running = [];
        foreach ($workload->lines() as $number => $line) {
            while (\count($running) >= $concurrency) {
                $running = self::poll($running, $tally);
            }
            $running[$number] = Process::fromShellCommandline($line, timeout: null);
            $running[$number]->start();
        }
        while ($running !== []) {
            $running = self::poll($running, $tally);
        }
    }

    /**
     * @param array<int, Process> $running
     *
     * @return array<int, Process> processes that are still running
     */
    private static function poll(array $running, Tally $tally): array
    {
        $still = array_filter($running, static fn(Process $process): bool => $process->isRunning());
        foreach (array_diff_key($running, $still) as $number => $process) {
            $tally->result($number, $process->getExitCode(), $process->getOutput());
        }
        if (\count($still) === \count($running)) {
            usleep(self::POLL_MICROSECONDS);
        }

        return $still;
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Bench\Contestant;

use React\ChildProcess\Process;
use React\EventLoop\Loop;
use React\Stream\ReadableStreamInterface;
use Spindle\Bench\Support\Package;
use Spindle\Bench\Support\Tally;
use Spindle\Bench\Support\Workload;

final readonly class ReactProcess implements Contestant
{
    /** Seconds between two checks of a process whose outputs are closed. The default of 0.1 would be slow. */
    private const POLL_INTERVAL = 0.001;

    public function label(): string
    {
        return Package::label('react/child-process');
    }

    public function missing(): ?string
    {
        return Package::missing('react/child-process', Process::class);
    }

    public function run(Workload $workload, int $concurrency, Tally $tally): void
    {
        $lines = $workload->lines();
        for ($i = 0; $i < $concurrency; ++$i) {
            self::next($lines, $tally);
        }
        Loop::run();
    }

    /** @param \Generator<int, string> $lines */
    private static function next(\Generator $lines, Tally $tally): void
    {
        if (!$lines->valid()) {
            return;
        }
        [$number, $process, $stdout] = [$lines->key(), new Process($lines->current()), ''];
        $lines->next();
        $process->start(null, self::POLL_INTERVAL);
        $output = $process->stdout;
        \assert($output instanceof ReadableStreamInterface);
        $output->on('data', static function (string $chunk) use (&$stdout): void {
            $stdout .= $chunk;
        });
        $process->on('exit', static function (?int $exitCode) use ($lines, $tally, $number, &$stdout): void {
            $tally->result($number, $exitCode, $stdout);
            self::next($lines, $tally);
        });
    }
}

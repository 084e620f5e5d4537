<?php

declare(strict_types=1);

namespace Spindle\Bench\Contestant;

use Spindle\Bench\Support\Environment;
use Spindle\Bench\Support\Tally;
use Spindle\Bench\Support\Workload;
use Spindle\Command\Command;
use Spindle\Command\CommandPool;
use Spindle\Command\CommandPoolOptions;
use Spindle\Command\StartMethod;

final class SpindlePool implements Contestant
{
    /** The pool, kept for all runs as in an application. */
    private ?CommandPool $pool = null;

    public function __construct(private readonly StartMethod $start) {}

    public function label(): string
    {
        return $this->start === StartMethod::Auto ? 'Spindle' : "Spindle, {$this->start->value}";
    }

    public function missing(): ?string
    {
        return $this->start === StartMethod::PosixSpawn && !Environment::hasFfi() ? 'there is no ext-ffi' : null;
    }

    public function run(Workload $workload, int $concurrency, Tally $tally): void
    {
        $this->pool ??= new CommandPool($concurrency, options: new CommandPoolOptions(startMethod: $this->start));
        foreach ($this->pool->run(self::commands($workload)) as $number => $result) {
            $tally->result($number, $result->exitCode, $result->stdout());
        }
    }

    /** @return \Generator<int, Command> */
    private static function commands(Workload $workload): \Generator
    {
        foreach ($workload->lines() as $number => $line) {
            yield $number => Command::shell($line);
        }
    }
}

<?php

declare(strict_types=1);

/*
 * Measures the cost of an idle pool: CPU time of this process and of the launcher, without a command and while one
 * sleeps.
 */

use Spindle\Bench\Support\Environment;
use Spindle\Bench\Support\Options;
use Spindle\Bench\Support\ProcessStatus;
use Spindle\Bench\Support\Rounds;
use Spindle\Bench\Support\Table;
use Spindle\Command\Command;
use Spindle\Command\CommandPool;
use Spindle\Command\CommandPoolOptions;

use function Amp\delay;

require __DIR__ . '/bootstrap.php';

/** @var non-empty-list<string> $argv */
$options = Options::read($argv, ['seconds' => '60', 'start-method' => 'auto'], <<<'TEXT'
    Usage: php bench/idle.php [options]
      --seconds N       measure each of the two phases for N seconds (60)
      --start-method METHOD
                        start commands by posix_spawn or proc_open, or choose automatically (auto)

    TEXT);
$seconds = $options->int('seconds');
Environment::print();
$pool = new CommandPool(8, options: new CommandPoolOptions(startMethod: $options->start()));
$pool->execute(Command::of('/bin/true'))->orThrow();
[$process, $launcher] = [ProcessStatus::ofThis(), ProcessStatus::ofLauncher()];

$phases = [
    'no command' => static fn() => delay($seconds),
    'one command that sleeps' => static fn() => $pool->execute(Command::of('sleep', (string) $seconds))->orThrow(),
];
$rows = [];
foreach ($phases as $phase => $wait) {
    Rounds::say("{$seconds} s with {$phase}");
    $before = [$process->cpu(), $launcher->cpu()];
    $wait();
    $used = array_map(
        static fn(float $after, float $before): float => 1000 * ($after - $before),
        [$process->cpu(), $launcher->cpu()],
        $before,
    );
    $rows[] = [
        $phase,
        ...array_map(static fn(float $ms): string => number_format($ms, 2), [...$used, array_sum($used)]),
    ];
}
Rounds::say('');
echo "\nCPU time in milliseconds over {$seconds} s\n\n", Table::markdown(['', 'process', 'launcher', 'both'], $rows);

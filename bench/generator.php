<?php

declare(strict_types=1);

/*
 * Runs very many commands from a generator, and measures the memory of this process and of the launcher over time.
 */

use Spindle\Bench\Support\Environment;
use Spindle\Bench\Support\Options;
use Spindle\Bench\Support\ProcessStatus;
use Spindle\Bench\Support\Rounds;
use Spindle\Bench\Support\Table;
use Spindle\Command\Command;
use Spindle\Command\CommandPool;
use Spindle\Command\CommandPoolOptions;

require __DIR__ . '/bootstrap.php';

/** @var non-empty-list<string> $argv */
$options = Options::read($argv, ['n' => '1000000', 'j' => '8', 'start-method' => 'auto'], <<<'TEXT'
    Usage: php bench/generator.php [options]
      -n N              run N commands (1000000)
      -j N              run N commands at once (8)
      --start-method METHOD
                        start commands by posix_spawn or proc_open, or choose automatically (auto)

    TEXT);
$count = $options->int('n');

$commands = static function () use ($count): Generator {
    for ($i = 0; $i < $count; ++$i) {
        yield $i => Command::of('/bin/true');
    }
};

Environment::print();
$pool = new CommandPool($options->int('j'), options: new CommandPoolOptions(startMethod: $options->start()));
$begin = hrtime(true);
[$done, $failed, $rows, $launcher] = [0, 0, [], null];
foreach ($pool->run($commands()) as $result) {
    ++$done;
    $failed += $result->succeeded() ? 0 : 1;
    if ($done % max(1, intdiv($count, 10)) === 0 || $done === $count) {
        $launcher ??= ProcessStatus::ofLauncher();
        $memory = array_map(
            static fn(int $bytes): string => number_format($bytes / (1 << 20), 1),
            [
                ProcessStatus::ofThis()->memory(),
                ProcessStatus::ofThis()->peak(),
                $launcher->memory(),
                $launcher->peak(),
            ],
        );
        $rows[$done] = [number_format($done), number_format($done / ((hrtime(true) - $begin) / 1e9)), ...$memory];
        Rounds::say("{$done} of {$count}");
    }
}
Rounds::say('');
echo "\nResident memory in MB over one run\n\n";
echo Table::markdown(['commands', 'commands/s', 'process', 'its peak', 'launcher', 'its peak'], array_values($rows));
if ($done !== $count || $failed > 0) {
    echo "\nWarning: {$done} results for {$count} commands, {$failed} with a failure\n";
    exit(1);
}

<?php

declare(strict_types=1);

/*
 * Runs one contestant in this process, which does nothing else, and prints one line of JSON.
 */

use Spindle\Bench\Contestant\Contestants;
use Spindle\Bench\Support\Ballast;
use Spindle\Bench\Support\Options;
use Spindle\Bench\Support\Tally;
use Spindle\Bench\Support\Usage;
use Spindle\Bench\Support\Workload;

require __DIR__ . '/bootstrap.php';

/** @var non-empty-list<string> $argv */
$name = $argv[1] ?? '-h';
$options = Options::read(
    str_starts_with($name, '-') ? $argv : array_slice($argv, 1),
    ['n' => '1000', 'j' => '8', 'memory' => '0', 'command' => 'echo hi', 'tasks' => 'command', 'cold' => null],
    <<<TEXT
        Usage: php bench/contestant.php NAME [options]
          -n N              run N commands (1000)
          -j N              run N commands at once (8)
          --memory MB       allocate this much memory in this process first (0)
          --command LINE    run this shell line (echo hi)
          --tasks KIND      command runs the shell line; echo or sleep runs TaskRunner.php's tasks (command)
          --cold            include the start of a pool in the measurement; otherwise the pool has run before

        TEXT,
);

$contestant = Contestants::named(Contestants::checked($name));
$workload = Workload::of($options->text('tasks'), $options->text('command'), $options->int('n'));
$ballast = Ballast::of($options->int('memory', 0));

$measure = static function (Workload $workload) use ($contestant, $options): array {
    $tally = new Tally($workload);
    $contestant->run($workload, $options->int('j'), $tally);

    return $tally->toArray();
};
$start = $options->has('cold') ? null : $measure(Workload::echoes($options->int('j')))['first'];
[$before, $running] = [Usage::now(), Usage::ofTree()];
$figures = $measure($workload);
unset($measure, $contestant);
$after = Usage::now();

echo json_encode($figures + [
    'start' => $start ?? $figures['first'],
    'cpu' => $after->cpu - $before->cpu,
    'cpu running' => Usage::ofTree() - $running,
    'peak' => $after->peak,
], JSON_THROW_ON_ERROR | JSON_PRESERVE_ZERO_FRACTION), "\n";

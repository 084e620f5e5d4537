<?php

declare(strict_types=1);

/*
 * Runs one contestant in this process, which holds nothing else, and prints one line of JSON.
 */

use Spindle\Bench\Contestant\Contestants;
use Spindle\Bench\Support\Ballast;
use Spindle\Bench\Support\Options;
use Spindle\Bench\Support\Tally;
use Spindle\Bench\Support\Usage;
use Spindle\Bench\Support\UsageException;
use Spindle\Bench\Support\Workload;

require __DIR__ . '/bootstrap.php';

/** @var non-empty-list<string> $argv */
$name = $argv[1] ?? '-h';
$options = Options::read(
    str_starts_with($name, '-') ? $argv : array_slice($argv, 1),
    ['n' => '1000', 'j' => '8', 'memory' => '0', 'command' => 'echo hi', 'tasks' => 'command'],
    <<<TEXT
        Usage: php bench/contestant.php NAME [options]
          -n N              commands to run (1000)
          -j N              so many at once (8)
          --memory MB       held by this process beforehand (0)
          --command LINE    what is run (echo hi)
          --tasks KIND      command, echo or sleep: that line, or TaskRunner.php's tasks (command)

        TEXT,
);

$count = $options->int('n');
$contestant = Contestants::named(Contestants::checked($name));
$workload = match ($options->text('tasks')) {
    'command' => Workload::repeat($options->text('command'), $count),
    'echo' => Workload::echoes($count),
    'sleep' => Workload::sleeps($count),
    default => throw new UsageException("option --tasks: '{$options->text('tasks')}' is not allowed; give command, echo or sleep"),
};
$ballast = Ballast::of($options->int('memory', 0));

$before = Usage::now();
$tally = new Tally($workload);
$contestant->run($workload, $options->int('j'), $tally);
$figures = $tally->toArray();
$after = Usage::now();

echo json_encode($figures + [
    'label' => $contestant->label(),
    'cpu' => $after->cpu - $before->cpu,
    'peak' => $after->peak,
], JSON_THROW_ON_ERROR | JSON_PRESERVE_ZERO_FRACTION), "\n";

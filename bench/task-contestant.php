<?php

declare(strict_types=1);

/*
 * Measures one contestant of the task benchmarks in this process, which does nothing else, and prints one line of JSON.
 */

use Spindle\Bench\Support\Options;
use Spindle\Bench\Support\Usage;
use Spindle\Bench\Tasks\Measure;
use Spindle\Bench\Tasks\TaskContestants;
use Spindle\Bench\Tasks\TaskMeasurement;

require __DIR__ . '/bootstrap.php';

/** @var non-empty-list<string> $argv */
[$what, $name] = [$argv[1] ?? '-h', $argv[2] ?? '-h'];
$options = Options::read(
    str_starts_with($name, '-') ? [$argv[0], '-h'] : array_slice($argv, 2),
    ['n' => '1000', 'j' => '2', 'bytes' => '1048576', 'iterations' => '10000000', 'closure' => null, 'pumice' => ''],
    <<<TEXT
        Usage: php bench/task-contestant.php MEASUREMENT CONTESTANT [options]
          -n N              run N tasks (1000)
          -j N              use N workers (2)
          --bytes N         send strings of N bytes in echo (1048576)
          --iterations N    run N iterations in each task of cpu (10000000)
          --closure         submit a closure in single, not the name of a function
          --pumice DIR      load Pumice's source from DIR

        TEXT,
);

$contestant = TaskContestants::named($name, $options->text('pumice'));
$measure = new Measure(
    $contestant,
    $options->int('n'),
    $options->int('j'),
    $options->int('bytes'),
    $options->int('iterations'),
    $options->has('closure'),
);
$before = Usage::now();
$figures = $measure->of(TaskMeasurement::from($what));
unset($measure, $contestant);
$after = Usage::now();

echo json_encode($figures + [
    'count' => $options->int('n'),
    'cpu' => $after->cpu - $before->cpu,
    'cpu running' => $after->cpu - $before->cpu,
    'peak' => $after->peak,
], JSON_THROW_ON_ERROR | JSON_PRESERVE_ZERO_FRACTION), "\n";

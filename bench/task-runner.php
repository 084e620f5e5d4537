<?php

declare(strict_types=1);

/*
 * The benchmark of TaskRunner.php with the same options, tasks and output, extended by Spindle.
 *
 *     for MB in 0 10 50 100 500; do php bench/task-runner.php -s0 -m$MB | awk '/TPS/{print $2}' | paste -sd ' '; done
 */

use Spindle\Bench\Contestant\Contestants;
use Spindle\Bench\Support\Ballast;
use Spindle\Bench\Support\Options;
use Spindle\Bench\Support\Tally;
use Spindle\Bench\Support\TaskRunnerTables;
use Spindle\Bench\Support\Workload;

require __DIR__ . '/bootstrap.php';

/** @var non-empty-list<string> $argv */
$options = Options::read(
    $argv,
    ['n' => '1000', 'm' => '500', 'p' => '8', 's' => '1', 'table' => null, 'rounds' => '1'],
    sprintf(<<<'TEXT'
        Usage: php bench/task-runner.php [options]
          -n N          run N tasks (1000)
          -m MB         allocate this much memory in this process first (500)
          -p N          run N tasks at once (8)
          -s 0|1        1: each task sleeps 1 to 10 ms; 0: each task only echoes its number (1)
          --table       print the tables of -s0 and of -p16 for 0, 10, 50, 100 and 500 MB, in Markdown
          --rounds N    print the medians of N runs in the tables (1)
          -h            print this help

        If the environment variable %s has the path of the original TaskRunner.php, ProcessPool and
        TaskRunner are the original classes. Otherwise they are replacements with the same architecture. These wait
        for events, but the original checks every 5 ms.

        TEXT, Contestants::TASK_RUNNER),
);

if ($options->has('table')) {
    TaskRunnerTables::print($options->int('n'), $options->int('rounds'));
    exit;
}

[$count, $memory, $pool, $sleep] = [
    $options->int('n'),
    $options->int('m', 0),
    $options->int('p'),
    $options->int('s', 0) > 0,
];
$workload = $sleep ? Workload::sleeps($count) : Workload::echoes($count);
$original = getenv(Contestants::TASK_RUNNER) !== false;
$tests = [
    'ForLoopExec' => 'for-loop',
    'ProcessPool' => $original ? 'taskrunner.php-pool' : 'proc_open',
    'TaskRunner' => $original ? 'taskrunner.php' : 'json-lines',
    'Spindle' => 'spindle',
    'SpindleTaskRunner' => 'drop-in',
];

printf(
    ">>>>> Config:\n\tPHP version: %s\n\tMemory: %d MB\n\tTasks: %d\n\tPool size: %d\n\tSleep: %s\n",
    PHP_VERSION,
    $memory,
    $count,
    $pool,
    $sleep ? 'true' : 'false',
);
$ballast = Ballast::of($memory);
printf("\tMemory held: %d MB\n>>>>> Benchmark started\n", memory_get_usage(true) >> 20);

foreach ($tests as $test => $name) {
    $contestant = Contestants::named(Contestants::checked($name));
    $tally = new Tally($workload);
    $contestant->run($workload, $pool, $tally);
    $figures = $tally->toArray();
    printf("test: %s\n\ttime: %.4f\n\tthroughput: %.3f TPS\n", $test, $figures['seconds'], $figures['rate']);
    if ($figures['failed'] > 0) {
        echo "\tlost exit codes: {$figures['failed']}\n";
    }
    if ($figures['results'] !== $count || $figures['wrong'] > 0) {
        fwrite(STDERR, "{$test} returned {$figures['results']} results, {$figures['wrong']} of which are wrong\n");
        exit(1);
    }
}

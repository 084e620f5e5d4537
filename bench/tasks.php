<?php

declare(strict_types=1);

/*
 * Measures the worker pool: tasks in bulk and one at a time, mixed, CPU-bound and with large values, its memory, the
 * start of a pool and the death of a worker. Each is compared with peers and with the machine's limits.
 */

use Spindle\Bench\Support\Entrants;
use Spindle\Bench\Support\Options;
use Spindle\Bench\Tasks\TaskComparison;
use Spindle\Bench\Tasks\TaskOptions;

require __DIR__ . '/bootstrap.php';

/** @var non-empty-list<string> $argv */
$options = Options::read(
    $argv,
    [
        'only' => 'all',
        'n' => '',
        'workers' => '1,2,4,8',
        'rounds' => '5',
        'contexts' => 'process',
        'peers' => 'all',
        'bytes' => '1048576',
        'iterations' => '10000000',
        'pumice' => '',
        'limit' => '900',
        'json' => '',
        ...Entrants::OPTIONS,
    ],
    <<<'TEXT'
        Usage: php bench/tasks.php [options]
          --only LIST       between commas, of: bulk, single, objects, mix, cpu, echo, memory, start, death (all)
          -n N              tasks for each measurement (each has its own number: 500000 of bulk, 2000 of single,
                            100000 of objects, 10000 of mix, 15 of cpu, 200 of echo, 1000000 of memory; 5 starts, 20 deaths)
          --workers LIST    how many, between commas, of bulk; the others have two (1,2,4,8)
          --rounds N        measurements of each contestant, in turn (5)
          --contexts LIST   what Spindle's workers are: process, fork, thread or all; start and death always try all (process)
          --peers LIST      between commas, of: amp, python, pumice; all is those that are installed, none is none
          --bytes N         of each string of echo (1048576)
          --iterations N    of each task of cpu (10000000)
          --pumice DIR      Pumice's source, so that it takes part in cpu
          --limit SECONDS   for one measurement: a peer that hangs does not hold up the others (900)
          --against DIR     measure the checkout of Spindle in this folder, too, and print the ratios to it
          --first           measure only the first of Spindle's contestants, and no peers
          --json FILE       where the raw data goes

        TEXT,
);

$taskOptions = TaskOptions::of($options);
$json = $options->output('json');
(new TaskComparison($taskOptions))->run($json);

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
        Usage: php bench/tasks.php [options]; defaults are in parentheses
          --only LIST      measure only these, separated by commas: bulk, single, objects, mix, cpu, echo,
                           memory, start, death (all)
          -n N             run N tasks in each measurement (500000 of bulk, 2000 of single, 100000 of
                           objects, 10000 of mix, 15 of cpu, 200 of echo, 1000000 of memory; 5 starts, 20
                           deaths)
          --workers LIST   use these numbers of workers in bulk, separated by commas (1,2,4,8); the others
                           use two
          --rounds N       measure each contestant N times, in turn (5)
          --contexts LIST  run Spindle's workers as process, fork, thread or all (process); start and
                           death always try all
          --peers LIST     compare with these, separated by commas: amp, python, pumice; or all that are
                           installed, or none (all)
          --bytes N        send strings of N bytes in echo (1048576)
          --iterations N   run N iterations in each task of cpu (10000000)
          --pumice DIR     compare cpu with Pumice, whose source is in DIR
          --limit SECONDS  stop a measurement after this time, because some peers hang (900)
          --against DIR    also measure the checkout of Spindle in DIR, and print the ratios to it
          --first          measure only the first of Spindle's contestants, without peers
          --json FILE      write the raw data to FILE

        TEXT,
);

$taskOptions = TaskOptions::of($options);
$json = $options->output('json');
(new TaskComparison($taskOptions))->run($json);

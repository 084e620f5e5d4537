<?php

declare(strict_types=1);

/*
 * Compares ways to run many shell commands concurrently, each in a separate process.
 */

use Spindle\Bench\Contestant\Contestants;
use Spindle\Bench\Support\Comparison;
use Spindle\Bench\Support\Entrants;
use Spindle\Bench\Support\Options;

require __DIR__ . '/bootstrap.php';

/** @var non-empty-list<string> $argv */
$options = Options::read(
    $argv,
    [
        'n' => '3000',
        'j' => '8',
        'memory' => '0',
        'rounds' => '5',
        'command' => 'echo hi',
        'workload' => 'command',
        'start-method' => 'auto',
        'peers' => 'all',
        'cold' => null,
        'json' => '',
        ...Entrants::OPTIONS,
    ],
    sprintf(<<<'TEXT'
        Usage: php bench/commands.php [options]; defaults are in parentheses
          -n N                   run N commands in each measurement (3000)
          -j N                   run N commands at once (8)
          --memory LIST          hold these numbers of megabytes in the measuring process, separated by commas
                                 (0)
          --rounds N             measure each contestant N times, in turn (5)
          --command LINE         run this shell line, whose output must always be the same (echo hi)
          --workload KIND        run the command, or TaskRunner.php's tasks: echo or sleep (command)
          --start-method METHOD  start commands by posix_spawn or proc_open; auto measures both if available
                                 (auto)
          --peers LIST           compare with these, separated by commas; or all that are installed, or none (all):
                                 %s
          --cold                 include the start of a pool in the measurement; otherwise the pool has run
                                 before
          --against DIR          also measure the checkout of Spindle in DIR, and print the ratios to it
          --first                measure only the first of Spindle's contestants, without peers
          --json FILE            write the raw data to FILE

        TEXT, wordwrap(implode(', ', array_keys(Contestants::all())), 80, "\n" . str_repeat(' ', 25))),
);

Comparison::of($options)->run($options->output('json'));

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
        'tasks' => 'command',
        'start' => 'auto',
        'peers' => 'all',
        'cold' => null,
        'json' => '',
        ...Entrants::OPTIONS,
    ],
    sprintf(<<<'TEXT'
        Usage: php bench/commands.php [options]
          -n N              commands for each measurement (3000)
          -j N              so many at once (8)
          --memory LIST     megabytes that the measuring process holds, between commas (0)
          --rounds N        measurements of each contestant, in turn (5)
          --command LINE    what is run; its output has to be the same each time (echo hi)
          --tasks KIND      command, or TaskRunner.php's tasks: echo or sleep (command)
          --start METHOD    how Spindle starts commands: auto, posix_spawn or proc_open; auto measures what there is
          --peers LIST      between commas, of: %s; all is those that are installed, none is none
          --cold            take the start of a pool into its figure, which is that of a pool that has run before
          --against DIR     measure the checkout of Spindle in this folder, too, and print the ratios to it
          --first           measure only the first of Spindle's contestants, and no peers
          --json FILE       where the raw data goes

        TEXT, implode(', ', array_keys(Contestants::all()))),
);

Comparison::of($options)->run($options->output('json'));

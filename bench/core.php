<?php

declare(strict_types=1);

/*
 * Measures eight figures of Spindle with their usual scripts, and prints them as one table: beside another checkout, or
 * alone.
 */

use Spindle\Bench\Support\Core;
use Spindle\Bench\Support\Entrants;
use Spindle\Bench\Support\Options;
use Spindle\Bench\Support\Signals;

require __DIR__ . '/bootstrap.php';

/** @var non-empty-list<string> $argv */
$options = Options::read(
    $argv,
    ['rounds' => '10', 'scale' => '100', 'only' => 'all', 'json' => '', 'against' => ''],
    sprintf(<<<'TEXT'
        Usage: php bench/core.php [options]
          --against DIR     also measure the checkout of Spindle in DIR, and print the ratios to it
          --only LIST       measure only these, separated by commas: %s (all)
          --rounds N        measure each line N times, in turn with the other checkout (10)
          --scale PERCENT   change the length of each measurement to PERCENT of the default (100)
          --json FILE       write the raw data to FILE

        The duration grows with rounds and scale; another checkout doubles it.

        TEXT, implode(', ', Core::names())),
);
Signals::exitOnSignal();

$json = $options->output('json');
$names = $options->names('only', Core::names());
$core = new Core(Entrants::of($options), $names, $options->int('rounds'), $options->int('scale'));
exit($core->run($json) ? 0 : 1);

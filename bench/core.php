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
          --against DIR     measure the checkout of Spindle in this folder, too, and print the ratios to it
          --only LIST       between commas, of: %s (all)
          --rounds N        measurements of each line, in turn with the other checkout (10)
          --scale PERCENT   of the usual length of each measurement (100)
          --json FILE       where the raw data goes

        The length grows with rounds and scale; another checkout doubles it.

        TEXT, implode(', ', Core::names())),
);
Signals::exitByThem();

$json = $options->output('json');
$names = $options->names('only', Core::names());
$core = new Core(Entrants::of($options), $names, $options->int('rounds'), $options->int('scale'));
exit($core->run($json) ? 0 : 1);

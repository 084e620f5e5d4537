<?php

declare(strict_types=1);

/*
 * Measures the gain from starting a simple shell line without a shell: `/bin/true` as a line for Spindle, compared with
 * `sh -c` in C.
 */

use Spindle\Bench\Contestant\Contestants;
use Spindle\Bench\Support\Column;
use Spindle\Bench\Support\ContestantProcess;
use Spindle\Bench\Support\LimitProgram;
use Spindle\Bench\Support\Options;
use Spindle\Bench\Support\Report;
use Spindle\Bench\Support\Rounds;
use Spindle\Bench\Support\Series;

require __DIR__ . '/bootstrap.php';

const LINE = '/bin/true';

/** @var non-empty-list<string> $argv */
$options = Options::read($argv, ['n' => '3000', 'j' => '8', 'rounds' => '5', 'json' => ''], <<<'TEXT'
    Usage: php bench/shell-line.php [options]
      -n N            run N commands in each measurement (3000)
      -j N            run N commands at once (8)
      --rounds N      measure each contestant N times, in turn (5)
      --json FILE     write the raw data to FILE

    TEXT);
[$count, $concurrency] = [$options->int('n'), $options->int('j')];
$work = ['n' => (string) $count, 'j' => (string) $concurrency, 'command' => LINE];

$limit = static fn(string ...$command): Closure
    => static fn(): float => LimitProgram::run($count, $concurrency, array_values($command))->rate;
$shell = new Series('limit in C, sh -c /bin/true', $limit('/bin/sh', '-c', LINE));
$program = new Series('limit in C, /bin/true itself', $limit(LINE));
$names = array_values(array_filter(
    ['spindle-posix_spawn', 'spindle-proc_open', 'proc_open'],
    Contestants::isAvailable(...),
));
$others = array_map(static fn(string $name): Series => ContestantProcess::series($name, $work), $names);

$json = $options->output('json');
$report = new Report($work);
$series = Rounds::run([$shell, $program, ...$others], $options->int('rounds'));
$report->table('A simple shell line', $series, [
    Column::median('commands/s'),
    Column::range(),
    Column::ratioTo('÷ sh -c in C', $shell),
    Column::ratioTo('÷ /bin/true in C', $program),
]);
$report->finish($json);

<?php

declare(strict_types=1);

/*
 * Runs one command at a time: the median time from submission to result, compared with the same in C.
 */

use Spindle\Bench\Support\Column;
use Spindle\Bench\Support\Environment;
use Spindle\Bench\Support\LimitProgram;
use Spindle\Bench\Support\Options;
use Spindle\Bench\Support\Report;
use Spindle\Bench\Support\Rounds;
use Spindle\Bench\Support\Series;
use Spindle\Bench\Support\Statistics;
use Spindle\Command\Command;
use Spindle\Command\CommandPool;
use Spindle\Command\CommandPoolOptions;
use Spindle\Command\StartMethod;

require __DIR__ . '/bootstrap.php';

const PROGRAM = '/bin/true';

/** @var non-empty-list<string> $argv */
$options = Options::read($argv, ['n' => '300', 'rounds' => '5', 'json' => ''], <<<'TEXT'
    Usage: php bench/latency.php [options]
      -n N            run N commands in each measurement (300)
      --rounds N      measure each contestant N times, in turn (5)
      --json FILE     write the raw data to FILE

    TEXT);
$count = $options->int('n');

$spindle = static function (StartMethod $start) use ($count): float {
    $pool = new CommandPool(1, options: new CommandPoolOptions(startMethod: $start));
    $command = Command::of(PROGRAM);
    $pool->execute($command)->orThrow();
    $times = [];
    for ($i = 0; $i < $count; ++$i) {
        $begin = hrtime(true);
        $pool->execute($command)->orThrow();
        $times[] = (hrtime(true) - $begin) / 1e6;
    }
    $pool->close();

    return Statistics::of($times)->median;
};

$limit = new Series(
    'limit (C, posix_spawn)',
    static fn(): float => 1000 * LimitProgram::run($count, 1, [PROGRAM])->median,
);
$series = [$limit, new Series('Spindle, proc_open', static fn(): float => $spindle(StartMethod::ProcOpen))];
if (Environment::hasFfi()) {
    array_splice(
        $series,
        1,
        0,
        [new Series('Spindle, posix_spawn', static fn(): float => $spindle(StartMethod::PosixSpawn))],
    );
}

$json = $options->output('json');
$report = new Report(['n' => $count, 'program' => PROGRAM]);
Rounds::run($series, $options->int('rounds'));
$report->table('One command at a time, median time of each in milliseconds', $series, [
    Column::median('ms', 3),
    Column::range(3),
    Column::figure('ms above the limit', static fn(Series $one): ?float => $one->above($limit)?->median, 3),
]);
$report->finish($json);

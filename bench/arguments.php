<?php

declare(strict_types=1);

/*
 * Measures the time in which a million arguments are passed to few commands, each with as many arguments as fit into
 * its command line: by `spindle run -X true` and by `xargs true`. The time includes the start of the program. Then
 * prints the peak memory of Spindle's processes for a hundredth of the arguments, a tenth, and all.
 */

use Spindle\Bench\Support\Column;
use Spindle\Bench\Support\Options;
use Spindle\Bench\Support\Program;
use Spindle\Bench\Support\Report;
use Spindle\Bench\Support\Rounds;
use Spindle\Bench\Support\Series;
use Spindle\Bench\Support\Usage;

require __DIR__ . '/bootstrap.php';

/** Shell line that prints the peaks of resident memory of `spindle run` and of its launcher, in KiB. */
const PEAKS = 'read -r _ _ _ parent _ </proc/$PPID/stat;'
    . ' sed -n "s/^VmHWM:[^0-9]*\([0-9]*\).*/\1/p" /proc/$parent/status /proc/$PPID/status | paste -s';

/** @var non-empty-list<string> $argv */
$options = Options::read($argv, ['n' => '1000000', 'j' => '2', 'rounds' => '9', 'json' => ''], <<<'TEXT'
    Usage: php bench/arguments.php [options]
      -n N            pass N arguments (1000000)
      -j N            run N commands at once (2)
      --rounds N      measure each program N times, in turn (9)
      --json FILE     write the raw data to FILE

    TEXT);
[$count, $jobs] = [$options->int('n'), (string) $options->int('j')];
$spindle = [PHP_BINARY, ...Program::PHP_OPTIONS, dirname(__DIR__) . '/bin/spindle', 'run', '-X', '-j', $jobs];

$path = (string) tempnam(sys_get_temp_dir(), 'spindle-bench-');
register_shutdown_function(static fn(): bool => unlink($path));

/** Writes the numbers from 1 on into the file. */
$write = static fn(int $count) => file_put_contents($path, implode("\n", range(1, $count)) . "\n");
/** Runs a command with the file as its input. */
$run = static function (string ...$command) use ($path): string {
    [$status, $output] = Program::run(['/bin/sh', '-c', 'exec "$@" <"$0"', $path, ...array_values($command)]);

    return $status === 0 ? $output : throw new RuntimeException(Program::failure($status, $output));
};
$series = static fn(string $name, string ...$command): Series
    => new Series($name, static function (Series $one) use ($command, $run): float {
        $before = Usage::now()->cpu;
        $begin = hrtime(true);
        $run(...$command);
        $milliseconds = (hrtime(true) - $begin) / 1e6;
        $one->record(['cpu' => 1000 * (Usage::now()->cpu - $before)]);

        return $milliseconds;
    });

$json = $options->output('json');
$report = new Report(['n' => $count, 'j' => $jobs]);
$all = [$series('spindle run -X', ...$spindle, ...['true'])];
if (Program::find('xargs') !== null) {
    array_unshift($all, $series('xargs -P', 'xargs', '-P', $jobs, 'true'));
}
$write($count);
Rounds::run($all, $options->int('rounds'));
$report->table(number_format($count) . ' arguments, including the start of the program', $all, [
    Column::median('ms'),
    Column::range(),
    Column::ratioOf('speed ÷ first line', $all[0]),
    Column::raw('ms of CPU', 'cpu', 0),
]);
$megabytes = static fn(string ...$kibibytes): string
    => number_format(max(0, ...array_map(intval(...), array_values($kibibytes))) / 1024, 1);
$rows = [];
foreach ([100, 10, 1] as $divisor) {
    $size = max(1, intdiv($count, $divisor));
    $write($size);
    preg_match_all('/^(\d+)\t(\d+)$/m', $run(...$spindle, ...['sh', '-c', PEAKS, 'sh']), $peaks);
    $rows[] = [number_format($size), $megabytes(...$peaks[1]), $megabytes(...$peaks[2])];
}
$report->rows('Peak of resident memory in MB', ['arguments', 'process', 'launcher'], $rows);
$report->finish($json);

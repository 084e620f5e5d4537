<?php

declare(strict_types=1);

/*
 * Measures the cost of creating threads, forks and processes, compared with reusing a worker; and the cost of thread
 * safety.
 */

use Spindle\Bench\Contexts\MeasuredPhp;
use Spindle\Bench\Contexts\Way;
use Spindle\Bench\Support\Column;
use Spindle\Bench\Support\Options;
use Spindle\Bench\Support\Report;
use Spindle\Bench\Support\Rounds;
use Spindle\Bench\Support\Series;

require __DIR__ . '/bootstrap.php';

/** @var non-empty-list<string> $argv */
$options = Options::read($argv, [
    'n' => '100',
    'samples' => '5',
    'php' => [],
    'iterations' => '1000000',
    'json' => '',
], <<<'TEXT'
    Usage: php bench/contexts.php [options]; defaults are in parentheses
      -n N              create N at once, then wait for them (100)
      --samples N       measure each N times, in turn (5)
      --php PATH        measure this PHP; may be given several times (the PHP that runs the benchmark)
      --iterations N    run N iterations of the CPU work that is the same on each PHP (1000000)
      --json FILE       write the raw data to FILE

    TEXT);
[$count, $samples, $iterations] = [$options->int('n'), $options->int('samples'), $options->int('iterations')];
$json = $options->output('json');
$paths = $options->all('php') === [] ? [PHP_BINARY] : $options->all('php');

$notAvailable = [];
$all = [];
foreach ($paths as $path) {
    $php = MeasuredPhp::at($path);
    if (is_string($php)) {
        $notAvailable[$path]['PHP'] = $php;
        continue;
    }
    $all[] = $php;
    foreach (array_filter($php->missing, is_string(...)) as $way => $reason) {
        $notAvailable[$path][Way::from($way)->label()] = $reason;
    }
}

$report = new Report(
    [
        'n' => $count,
        'samples' => $samples,
        'php' => $paths,
        'iterations' => $iterations,
        'not available' => $notAvailable,
    ],
);
$result = null;
$same = static function (string $text) use (&$result): bool {
    return $text === $result ??= $text;
};
$work = array_map(static fn(MeasuredPhp $php): Series => $php->work($iterations, $same), $all);
$created = array_map(static fn(MeasuredPhp $php): array => array_map(
    static fn(Way $way): Series => $php->creation($way, $count),
    array_filter(Way::cases(), static fn(Way $way): bool => $php->missing[$way->value] === null),
), $all);
Rounds::run(array_merge($work, ...array_map(array_values(...), $created)), $samples);

foreach ($all as $number => $php) {
    $series = array_values($created[$number]);
    $forks = array_values(array_filter($series, static fn(Series $one): bool => $one->label === Way::Fork->label()));
    $report->table("{$php->name}, {$php->path}: created, {$count} at once", $series, [
        Column::median('each second'),
        Column::range(),
        ...($forks === [] ? [] : [Column::ratioTo('÷ forks', $forks[0])]),
    ]);
    foreach ($notAvailable[$php->path] ?? [] as $what => $reason) {
        echo "{$what}: not available: {$reason}\n";
    }
}
foreach ($notAvailable as $path => $reasons) {
    echo isset($reasons['PHP']) ? "\n{$path}: not available: {$reasons['PHP']}\n" : '';
}
if ($work !== []) {
    $report->table("The same CPU work, iterations: {$iterations}", $work, [
        Column::median('s', 3),
        Column::range(3),
        Column::ratioTo('÷ the first', $work[0]),
    ]);
}
$report->finish($json);

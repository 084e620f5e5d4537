<?php

declare(strict_types=1);

/*
 * Kills what an agent runs if the agent itself is stopped or gets no CPU until its lease is nearly over.
 *
 * Argument: the agent's process id. Standard input: lines with the time until which its processes may run, in
 * nanoseconds of hrtime(); at end of input the agent is gone, and this process ends too.
 */

use Spindle\Internal\Launcher\Process\ProcessTree;
use Spindle\Internal\Launcher\Process\Signals;

foreach (['Files', 'ProcessTree', 'Signals'] as $class) {
    require dirname(__DIR__, 2) . "/Internal/Launcher/Process/{$class}.php";
}
require dirname(__DIR__, 2) . '/Internal/Launcher/LauncherProtocol.php';

$agent = (int) $argv[1];
$until = \PHP_INT_MAX;
$lines = '';
$find = static fn(): array => array_values(array_diff(array_keys(ProcessTree::find('', [], $agent)), [getmypid()]));
stream_set_blocking(\STDIN, false);
while (true) {
    $left = min(3_600_000_000, max(0, intdiv($until - hrtime(true), 1000)));
    $reads = [\STDIN];
    $none = null;
    @stream_select($reads, $none, $none, intdiv($left, 1_000_000), $left % 1_000_000);
    $lines .= fread(\STDIN, 65536);
    if (preg_match_all('/(\d+)\n/', $lines, $times) > 0) {
        $until = (int) end($times[1]);
        $lines = substr($lines, (int) strrpos($lines, "\n") + 1);
    } elseif (feof(\STDIN)) {
        exit(0);
    }
    if (hrtime(true) >= $until) {
        ProcessTree::kill($find, static function (int $pid, int $signal): void {
            Signals::send($pid, $signal);
        });
        $until = \PHP_INT_MAX;
    }
}

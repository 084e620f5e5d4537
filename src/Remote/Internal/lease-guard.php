<?php

declare(strict_types=1);

/*
 * Helper process of LeaseGuard. Kills all other descendants of an agent, at a time that the agent has set. A working
 * agent regularly sets a later time. An agent that is suspended or gets no CPU time sets no later time. Then this
 * helper kills the agent's jobs before other agents can run them.
 *
 * Argument: the agent's process id. Standard input: lines, each with a new time of the kill, in nanoseconds of
 * hrtime(). The input ends when the agent has exited or has closed the guard. Then this helper exits.
 */

use Spindle\Internal\Launcher\Process\Files;
use Spindle\Internal\Launcher\Process\ProcessTree;
use Spindle\Internal\Launcher\Process\Signals;

foreach (['Files', 'ProcessTree', 'Signals'] as $class) {
    require dirname(__DIR__, 2) . "/Internal/Launcher/Process/{$class}.php";
}
require dirname(__DIR__, 2) . '/Internal/Launcher/LauncherProtocol.php';

$agentPid = (int) $argv[1];
$until = \PHP_INT_MAX;
$lines = '';
// An agent process has a guard for each of its queues. Guards that suspended each other would kill nothing.
$guard = "/lease-guard\\.php[^\\x00]*\\x00{$agentPid}\\x00$/D";
$isJob = static fn(int $pid): bool => $pid !== getmypid()
    && preg_match($guard, (string) Files::read("/proc/{$pid}/cmdline")) !== 1;
$findProcesses = static function () use ($agentPid, $isJob): array {
    return array_values(array_filter(array_keys(ProcessTree::find('', [], $agentPid)), $isJob));
};
stream_set_blocking(\STDIN, false);
fwrite(\STDOUT, '+'); // LeaseGuard::READY
fclose(\STDOUT);
while (true) {
    $microseconds = min(3_600_000_000, max(0, intdiv($until - hrtime(true), 1000)));
    $reads = [\STDIN];
    $none = null;
    @stream_select($reads, $none, $none, intdiv($microseconds, 1_000_000), $microseconds % 1_000_000);
    while (($read = (string) fread(\STDIN, 65536)) !== '') {
        $lines .= $read; // after a suspension of this process, the first 64 KiB may lack the latest time
    }
    if (preg_match_all('/(\d+)\n/', $lines, $times) > 0) {
        $until = (int) end($times[1]);
        $lines = substr($lines, (int) strrpos($lines, "\n") + 1);
    } elseif (feof(\STDIN)) {
        exit(0);
    }
    if (hrtime(true) >= $until) {
        ProcessTree::kill($findProcesses, Signals::send(...));
        $until = \PHP_INT_MAX;
    }
}

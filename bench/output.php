<?php

declare(strict_types=1);

/*
 * Streams very much output of one command. Checks that every byte arrives, and measures the growth of this process and
 * of the launcher.
 */

use Spindle\Bench\Support\Environment;
use Spindle\Bench\Support\Options;
use Spindle\Bench\Support\ProcessStatus;
use Spindle\Bench\Support\Program;
use Spindle\Bench\Support\Rounds;
use Spindle\Bench\Support\Table;
use Spindle\Command\Command;
use Spindle\Command\CommandPool;
use Spindle\Command\CommandPoolOptions;

require __DIR__ . '/bootstrap.php';

/** @var non-empty-list<string> $argv */
$options = Options::read($argv, ['megabytes' => '10240', 'start-method' => 'auto'], <<<'TEXT'
    Usage: php bench/output.php [options]
      --megabytes N     stream N megabytes of output (10240)
      --start-method METHOD
                        start commands by posix_spawn or proc_open, or choose automatically (auto)

    TEXT);
$bytes = $options->int('megabytes') << 20;

// A reproducible stream without repetition: a lost, doubled or swapped piece changes the sum.
$zero = str_repeat('0', 32);
$source = Program::find('openssl') === null
    ? 'seq 1 inf'
    : "openssl enc -aes-128-ctr -nosalt -K {$zero} -iv {$zero} -in /dev/zero 2>/dev/null";
$line = "{$source} | head -c {$bytes}";

$toCallback = static function (CommandPool $pool) use ($line): string {
    $hash = hash_init('sha256');
    $pool->execute(Command::shell($line)->withStdout(static function (string $chunk) use ($hash): void {
        hash_update($hash, $chunk);
    }))->orThrow();

    return hash_final($hash);
};
$toStream = static function (CommandPool $pool) use ($line): string {
    $sum = proc_open(['sha256sum'], [['pipe', 'r'], ['pipe', 'w']], $pipes);
    assert($sum !== false && isset($pipes[0], $pipes[1]));
    $pool->execute(Command::shell($line)->withStdout($pipes[0]))->orThrow();
    fclose($pipes[0]);
    $digest = (string) stream_get_contents($pipes[1]);
    proc_close($sum);

    return substr($digest, 0, 64);
};

Environment::print();
Rounds::say('computing the expected SHA-256');
$expected = substr((string) shell_exec("{$line} | sha256sum"), 0, 64);
$pool = new CommandPool(1, options: new CommandPoolOptions(startMethod: $options->start()));
$pool->execute(Command::shell('echo hi; echo hi >&2')->withStdout(static fn(string $chunk) => null))->orThrow();
$processes = [ProcessStatus::ofThis(), ProcessStatus::ofLauncher()];
$rows = [];
foreach (['a callback' => $toCallback, 'a stream' => $toStream] as $target => $run) {
    Rounds::say("to {$target}");
    array_walk($processes, static fn(ProcessStatus $process) => $process->forgetPeak());
    $before = array_map(static fn(ProcessStatus $process): int => $process->memory(), $processes);
    $begin = hrtime(true);
    $same = $run($pool) === $expected;
    $rate = $options->int('megabytes') / ((hrtime(true) - $begin) / 1e9);
    $grown = array_map(
        static fn(ProcessStatus $process, int $memory): string
            => number_format(($process->peak() - $memory) / (1 << 20), 1),
        $processes,
        $before,
    );
    $rows[] = ["to {$target}", $same ? 'identical' : 'DIFFERENT', number_format($rate), ...$grown];
}
Rounds::say('');
echo "\n{$options->text('megabytes')} MB of output from one command\n\n";
echo Table::markdown(['', 'SHA-256', 'MB/s', 'process grows by MB', 'launcher grows by MB'], $rows);
exit(str_contains(implode(array_column($rows, 1)), 'DIFFERENT') ? 1 : 0);

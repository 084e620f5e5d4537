<?php

declare(strict_types=1);

/*
 * Measures tasks on other machines, with an engine, agents and a script on this one: tasks in bulk and one at a time,
 * the time until a task of a killed worker or agent runs again, and claims from a short and a long queue.
 */

use Spindle\Bench\Remote\Comparison;
use Spindle\Bench\Remote\ComparisonOptions;
use Spindle\Bench\Support\Entrants;
use Spindle\Bench\Support\Options;
use Spindle\Bench\Support\Signals;
use Spindle\Bench\Support\UsageException;

require __DIR__ . '/bootstrap.php';

/** @var non-empty-list<string> $argv */
$options = Options::read(
    $argv,
    [
        'only' => 'all',
        'n' => '100000',
        'rounds' => '5',
        'kills' => '20',
        'backlog' => '1000000',
        'json' => '',
        ...Entrants::OPTIONS,
    ],
    <<<'TEXT'
        Usage: php bench/remote.php [options]
          --only LIST       between commas, of: bulk, single, recovery, backlog (all)
          -n N              tasks of bulk; a fiftieth as many of single, and a fifth for 64 at once (100000)
          --rounds N        measurements of each contestant, in turn; recovery is measured once (5)
          --kills N         workers that are killed in recovery, and a quarter as many agents (20)
          --backlog N       jobs of the long queue; the short one has 1000 (1000000)
          --against DIR     measure the checkout of Spindle in this folder, too, and print the ratios to it
          --first           measure only the first of Spindle's contestants, and no peers
          --json FILE       where the raw data goes

        It starts redis-server, or valkey-server, for itself: one whose append-only file is synced for each answer
        (durable), and one whose file is synced every second (fast). For example:
          php bench/remote.php --only bulk,single --rounds 3
          php bench/remote.php --only recovery --kills 100 --json recovery.json
          php bench/remote.php --only backlog --backlog 100000

        TEXT,
);
if (!extension_loaded('posix') || !is_dir('/proc/self')) {
    throw new UsageException(
        'agents and their workers are measured and killed with ext-posix and /proc; take a PHP and a system that have them',
    );
}
Signals::exitByThem();

$comparisonOptions = ComparisonOptions::of($options);
$json = $options->output('json');
(new Comparison($comparisonOptions))->run($json);

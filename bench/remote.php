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
        Usage: php bench/remote.php [options]; defaults are in parentheses
          --only LIST    measure only these, separated by commas: bulk, single, recovery, backlog (all)
          -n N           run N tasks in bulk, a fiftieth as many in single, and a fifth with 64 at once
                         (100000)
          --rounds N     measure each contestant N times, in turn (5); recovery is measured once
          --kills N      kill N workers, and a quarter as many agents, in recovery (20)
          --backlog N    put N jobs into the long queue (1000000); the short one has 1000
          --against DIR  also measure the checkout of Spindle in DIR, and print the ratios to it
          --first        measure only the first of Spindle's contestants, without peers
          --json FILE    write the raw data to FILE

        The benchmark starts two instances of redis-server or valkey-server. One syncs its append-only file before each
        answer (durable), the other every second (fast). For example:
          php bench/remote.php --only bulk,single --rounds 3
          php bench/remote.php --only recovery --kills 100 --json recovery.json
          php bench/remote.php --only backlog --backlog 100000

        TEXT,
);
if (!extension_loaded('posix') || !is_dir('/proc/self')) {
    throw new UsageException(
        'agents are measured and killed with ext-posix and /proc, of which one is missing on this machine',
    );
}
Signals::exitOnSignal();

$comparisonOptions = ComparisonOptions::of($options);
$json = $options->output('json');
(new Comparison($comparisonOptions))->run($json);

<?php

declare(strict_types=1);

/*
 * The script of the remote benchmarks, as a separate process: runs tasks locally or by agents, and writes one line of
 * JSON into a file.
 */

use Spindle\Bench\Remote\Measurement;
use Spindle\Bench\Remote\Rig;
use Spindle\Bench\Remote\Script;
use Spindle\Bench\Support\Options;
use Spindle\Bench\Tasks\Bootstrap;
use Spindle\Remote\RedisBroker;
use Spindle\Remote\RemoteExecutor;
use Spindle\Remote\SigningKeys;
use Spindle\Worker\WorkerPool;
use Spindle\Worker\WorkerPoolOptions;

use function Amp\delay;

require __DIR__ . '/bootstrap.php';

/** @var non-empty-list<string> $argv */
$options = Options::read(
    $argv,
    [
        'what' => 'bulk',
        'n' => '1000',
        'address' => '',
        'keys' => '',
        'agent' => '0',
        'engine' => '0',
        'result' => '/dev/stdout',
    ],
    <<<'TEXT'
        Usage: php bench/remote-script.php [options]
          --what NAME         run this measurement: bulk or single (bulk)
          -n N                run N tasks in bulk (1000)
          --address FILE      read the engine's address from FILE; without this option, a pool of this process runs
                              the tasks
          --keys FILE         read the signing keys from FILE
          --agent PID         the process id of the agent
          --engine PID        the process id of the engine
          --result FILE       write the result to FILE (standard output)

        TEXT,
);
$broker = $options->has('address') ? new RedisBroker((string) file_get_contents($options->text('address'))) : null;
// The start of an agent is not measured.
$deadline = hrtime(true) + Rig::START_TIMEOUT * 1e9;
while ($broker !== null && $broker->statistics(Rig::QUEUE)['agents'] === 0) {
    if (hrtime(true) > $deadline) {
        throw new RuntimeException('no agent serves the queue');
    }
    delay(0.02);
}
$executor = $broker !== null
    ? new RemoteExecutor($broker, Rig::QUEUE, SigningKeys::fromFile($options->text('keys')))
    : new WorkerPool(Rig::WORKERS, options: new WorkerPoolOptions(bootstrap: Bootstrap::file()));
$script = new Script($executor, $options->int('agent', 0), $options->int('engine', 0));
$figures = $script->run(Measurement::from($options->text('what')), $options->int('n'));
$figures['submitted'] = $broker?->statistics(Rig::QUEUE)['submitted_total'] ?? 0;
file_put_contents(
    $options->text('result'),
    json_encode($figures, JSON_THROW_ON_ERROR | JSON_PRESERVE_ZERO_FRACTION) . "\n",
);

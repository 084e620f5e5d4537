<?php

declare(strict_types=1);

/*
 * An agent of the remote benchmarks, as a separate process: php remote-agent.php ADDRESS-FILE KEY-FILE WORKERS
 */

use Revolt\EventLoop;
use Spindle\Bench\Remote\Rig;
use Spindle\Bench\Tasks\Bootstrap;
use Spindle\Remote\Agent;
use Spindle\Remote\AgentOptions;
use Spindle\Remote\RedisBroker;
use Spindle\Remote\SigningKeys;
use Spindle\Worker\WorkerPoolOptions;

require __DIR__ . '/bootstrap.php';

/** @var non-empty-list<string> $argv */
[, $address, $keys, $workers] = [...$argv, '', '', ''];
$broker = new RedisBroker((string) file_get_contents($address));
$options = new AgentOptions(new WorkerPoolOptions(bootstrap: Bootstrap::file()));
$agent = new Agent($broker, Rig::QUEUE, (int) $workers, SigningKeys::fromFile($keys), $options);
foreach ([SIGTERM, SIGINT] as $signal) {
    EventLoop::unreference(EventLoop::onSignal($signal, static fn() => $agent->close()));
}
$agent->run();

<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Remote;

use Amp\SignalCancellation;
use Spindle\Remote\Agent;
use Spindle\Remote\AgentOptions;
use Spindle\Remote\RedisBroker;
use Spindle\Remote\SigningKeys;
use Spindle\Tests\Remote\AgentProgram;
use Spindle\Worker\WorkerPoolOptions;

/** An agent whose workers have different code. */
final class AgentWithOtherCode
{
    public static function run(string $address, string $queue, string $bootstrap): void
    {
        $stop = new SignalCancellation([\SIGTERM, \SIGINT]);
        $options = new AgentOptions(new WorkerPoolOptions(bootstrap: $bootstrap));
        (new Agent(new RedisBroker($address), $queue, 2, new SigningKeys([AgentProgram::KEY]), $options))->run($stop);
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Remote;

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
        $options = new AgentOptions(new WorkerPoolOptions(bootstrap: $bootstrap));
        $keys = new SigningKeys([AgentProgram::KEY]);
        AgentProgram::runUntilSignal(new Agent(new RedisBroker($address), $queue, 2, $keys, $options));
    }
}

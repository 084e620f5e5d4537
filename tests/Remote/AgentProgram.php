<?php

declare(strict_types=1);

namespace Spindle\Tests\Remote;

use Revolt\EventLoop;
use Spindle\Remote\Agent;
use Spindle\Remote\AgentOptions;
use Spindle\Remote\RedisBroker;
use Spindle\Remote\SigningKeys;

/** The program of an agent's process, which runs until it is asked to stop. */
final class AgentProgram
{
    public const KEY = 'a key of tests, a key of tests..';

    /** @return array<string, int|float> its figures */
    public static function run(
        string $address,
        string $queue,
        int $workers,
        float $lease = 10.0,
        float $heartbeat = 1.0,
        float $leaseMargin = 3.0,
    ): array {
        $memory = getenv('SPINDLE_TEST_AGENT_MEMORY');
        if ($memory !== false) {
            ini_set('memory_limit', $memory);
        }
        $maxResultBytes = getenv('SPINDLE_TEST_MAX_RESULT');
        $agent = new Agent(
            new RedisBroker($address),
            $queue,
            $workers,
            new SigningKeys([self::KEY]),
            new AgentOptions(
                lease: $lease,
                heartbeat: $heartbeat,
                leaseMargin: $leaseMargin,
                maxResultBytes: $maxResultBytes === false ? 16 << 20 : (int) $maxResultBytes,
            ),
        );
        self::runUntilSignal($agent);

        return $agent->statistics();
    }

    public static function runUntilSignal(Agent $agent): void
    {
        foreach ([\SIGTERM, \SIGINT] as $signal) {
            EventLoop::unreference(EventLoop::onSignal($signal, static fn() => $agent->close()));
        }
        $agent->run();
    }
}

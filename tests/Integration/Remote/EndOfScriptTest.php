<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Remote;

use Amp\DeferredFuture;
use PHPUnit\Framework\Attributes\TestWith;
use Revolt\EventLoop;
use Spindle\Remote\Agent;
use Spindle\Remote\AgentOptions;
use Spindle\Remote\RedisBroker;
use Spindle\Remote\RemoteExecutor;
use Spindle\Remote\SigningKeys;
use Spindle\Tests\Host;
use Spindle\Tests\Remote\AgentProgram;
use Spindle\Tests\Remote\MemoryBroker;
use Spindle\Tests\Remote\MemoryEngine;
use Spindle\Tests\TidyTestCase;

use function Amp\async;

/** A script ends while an agent or a connection attempt runs in a fiber, which PHP then destroys. */
final class EndOfScriptTest extends TidyTestCase
{
    #[TestWith([false])]
    #[TestWith([true])]
    public function testTheScriptEndsNormally(bool $kills): void
    {
        // Host::call() fails if the exit status is not 0.
        self::assertSame(1, Host::call(self::class . '::runAgent', [$kills]));
    }

    public function testTheScriptEndsWhileAFiberConnects(): void
    {
        self::assertTrue(Host::call(self::class . '::connect'));
    }

    /** Returns whether the engine, which never answers the TLS handshake, has accepted the connection. */
    public static function connect(): bool
    {
        $engine = stream_socket_server('tcp://127.0.0.1:0');
        self::assertNotFalse($engine);
        $address = 'rediss://' . stream_socket_get_name($engine, false);
        $executor = new RemoteExecutor(new RedisBroker($address), 'queue', new SigningKeys([AgentProgram::KEY]));
        async($executor->dispatch(...), static fn(): int => 1)->ignore();
        /** @var DeferredFuture<bool> $accepted */
        $accepted = new DeferredFuture();
        $watcher = EventLoop::onReadable($engine, static function () use ($engine, $accepted): void {
            $accepted->complete(stream_socket_accept($engine) !== false);
        });
        try {
            return $accepted->getFuture()->await();
        } finally {
            EventLoop::cancel($watcher);
        }
    }

    public static function runAgent(bool $kills): int
    {
        $broker = new MemoryBroker(new MemoryEngine());
        $keys = new SigningKeys([AgentProgram::KEY]);
        $agent = new Agent($broker, 'queue', 1, $keys, new AgentOptions(leaseGuard: false));
        async($agent->run(...))->ignore();
        $result = (new RemoteExecutor($broker, 'queue', $keys))->submit(static fn(): int => 1)->await();
        if ($kills) {
            $agent->kill();
        }

        return $result;
    }
}

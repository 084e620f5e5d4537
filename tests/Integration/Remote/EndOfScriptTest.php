<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Remote;

use PHPUnit\Framework\Attributes\TestWith;
use Spindle\Remote\Agent;
use Spindle\Remote\AgentOptions;
use Spindle\Remote\RemoteExecutor;
use Spindle\Remote\SigningKeys;
use Spindle\Tests\Host;
use Spindle\Tests\Remote\AgentProgram;
use Spindle\Tests\Remote\MemoryBroker;
use Spindle\Tests\Remote\MemoryEngine;
use Spindle\Tests\TidyTestCase;

use function Amp\async;

/** A script ends while its agent runs in a fiber, which PHP then destroys. */
final class EndOfScriptTest extends TidyTestCase
{
    #[TestWith([false])]
    #[TestWith([true])]
    public function testTheScriptEndsNormally(bool $kills): void
    {
        // Host::call() fails if the exit status is not 0.
        self::assertSame(1, Host::call(self::class . '::runAgent', [$kills]));
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

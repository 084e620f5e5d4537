<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Remote;

use Amp\Future;
use Spindle\Command\Command;
use Spindle\Command\CommandPool;
use Spindle\Command\CommandPoolOptions;
use Spindle\Remote\Agent;
use Spindle\Remote\AgentOptions;
use Spindle\Remote\Broker;
use Spindle\Remote\RemoteCommands;
use Spindle\Remote\RemoteExecutor;
use Spindle\Remote\SigningKeys;
use Spindle\Tests\Conformance\Worker\Task\Gate;
use Spindle\Tests\Eventually;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Remote\AgentProgram;
use Spindle\Tests\Remote\MemoryBroker;
use Spindle\Tests\Remote\MemoryEngine;
use Spindle\Tests\TidyTestCase;

use function Amp\async;
use function Amp\Future\await;

/** Slow jobs among many fast ones. The fast jobs teach an agent to claim many jobs. */
final class SlowJobsTest extends TidyTestCase
{
    use OwnDirectory;

    private const HEARTBEAT = 0.2;
    private const DEADLINE = 20.0;

    private MemoryEngine $engine;

    private int $renewalCount = 0;

    /** @var array<int, Agent> */
    private array $agents = [];

    /** @var array<int, Future<void>> */
    private array $ended = [];

    /** Number of results that the caller has. */
    private int $resultCount = 0;

    public function testTasksBehindASlowTaskRunOnAnotherAgent(): void
    {
        $gate = new Gate($this->path('gate'));
        $executor = new RemoteExecutor(new MemoryBroker($this->engine), 'queue', self::keys());
        $results = $executor->mapUnordered(
            range(1, 1000),
            // After tasks of over 0.1 ms, the worker sends each result before the next task starts.
            static fn(int $number): mixed => $number === 500 ? $gate->pass() : usleep(200),
        );
        $this->assertOthersRunElsewhere($gate, $results, 1000);
    }

    public function testCommandsBehindASlowCommandRunOnAnotherAgent(): void
    {
        $gate = new Gate($this->path('gate'));
        $directory = escapeshellarg($this->path('gate'));
        $slow = Command::shell("cd {$directory}; : > task; until test -e open; do sleep 0.05; done");
        $transport = new RemoteCommands(new MemoryBroker($this->engine), 'queue', self::keys());
        $pool = new CommandPool(options: new CommandPoolOptions(transport: $transport));
        $commands = array_fill(1, 200, Command::of('true'));
        $commands[100] = $slow;
        $this->assertOthersRunElsewhere($gate, $pool->run($commands), 200);
        $pool->close();
        $transport->close();
    }

    protected function setUp(): void
    {
        $this->engine = new MemoryEngine();
    }

    /** @param \Generator<mixed, mixed, mixed, mixed> $results */
    private function assertOthersRunElsewhere(Gate $gate, \Generator $results, int $count): void
    {
        $this->startAgent();
        $loop = async(function () use ($results): void {
            foreach ($results as $_) {
                ++$this->resultCount;
            }
        });
        $statistics = fn(): array => $this->agents[0]->statistics();
        Eventually::holds(static fn(): bool => $gate->names() !== [], 'the slow job runs', self::DEADLINE);
        Eventually::holds(static fn(): bool => $statistics()['claimed'] === 1, 'others are given back', self::DEADLINE);
        $released = $statistics()['released_total'];
        $renewalCount = $this->renewalCount;
        Eventually::holds(
            fn(): bool => $this->renewalCount > $renewalCount + 5,
            'the agent sends heartbeats',
            self::DEADLINE,
        );
        self::assertSame(
            [1, $released],
            [$statistics()['claimed'], $statistics()['released_total']],
            'an agent whose worker is busy claims nothing',
        );
        $this->startAgent();
        Eventually::holds(
            fn(): bool => $this->resultCount === $count - 1,
            'the others run on the second agent',
            self::DEADLINE,
        );
        $gate->open();
        $loop->await();
        self::assertSame($count, $this->resultCount);
        foreach ($this->agents as $agent) {
            $agent->close();
        }
        await($this->ended);
    }

    private function startAgent(): void
    {
        $memory = new MemoryBroker($this->engine);
        $broker = self::createStub(Broker::class);
        foreach (get_class_methods(Broker::class) as $method) {
            $forward = (new \ReflectionMethod($memory, $method))->getClosure($memory);
            $broker->method($method)->willReturnCallback(function (mixed ...$arguments) use ($method, $forward): mixed {
                $this->renewalCount += $method === 'renewLease' ? 1 : 0;

                return $forward(...$arguments);
            });
        }
        $options = new AgentOptions(heartbeat: self::HEARTBEAT, leaseGuard: false);
        $this->agents[] = $agent = new Agent($broker, 'queue', 1, self::keys(), $options);
        $this->ended[] = async($agent->run(...));
    }

    private static function keys(): SigningKeys
    {
        return new SigningKeys([AgentProgram::KEY]);
    }
}

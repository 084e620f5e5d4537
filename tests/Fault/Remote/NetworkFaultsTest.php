<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Remote;

use Amp\Future;
use PHPUnit\Framework\Attributes\After;
use Spindle\Remote\BrokerUnavailableException;
use Spindle\Remote\RedisBroker;
use Spindle\Remote\RemoteExecutor;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\Eventually;
use Spindle\Tests\Scale;
use Spindle\Tests\Text;
use Spindle\Tests\TidyTestCase;
use Symfony\Component\Process\Process;

use function Amp\delay;

/** Network faults, made by the kernel: packets that get lost in one direction, and links that go down. Root only. */
final class NetworkFaultsTest extends TidyTestCase
{
    use CatchesThrown;
    use OtherMachines;
    use OwnEngine;

    /** Table of nft, while replies get lost. */
    private string $table = '';

    protected function deadline(): int
    {
        return 120 + 20 * Scale::of(20);
    }

    public function testASubmissionWithALostAnswerIsStoredOnce(): void
    {
        $log = $this->file('log', '');
        $executor = $this->executor(new RedisBroker($this->engine()->url(), timeout: 0.5), brokerRetryTimeout: 0.0);
        $task = static fn(): int => CountedTasks::note($log);
        $executor->dispatch($task, 'first');
        $this->loseReplies();
        $failure = self::thrown(BrokerUnavailableException::class, static fn() => $executor->dispatch($task, 'second'));
        self::assertStringContainsString('no answer within 0.5 seconds', $failure->getMessage());
        self::assertSame(2, $this->statistics()['submitted_total'], 'it was done');
        $this->passReplies();
        $executor->dispatch($task, 'second');
        $this->agentAt($this->engine()->socketUrl(), $this->queue());

        self::assertSame([1, 1], [$executor->attach('first')->await(), $executor->attach('second')->await()]);
        self::assertSame(2, $this->statistics()['submitted_total']);
        self::assertEqualsCanonicalizing(['first', 'second'], Text::lines($log));
    }

    public function testAnAgentThatIsCutOffEndsItsJobsBeforeOthersClaimThem(): void
    {
        $this->loseReplies(); // first, because nothing has to be stopped yet if this skips the test
        $this->passReplies();
        $redis = $this->engine();
        $executor = $this->executor(new RedisBroker($redis->socketUrl()));
        $deaf = $this->agentAt($redis->url(), $this->queue(), 2, ...self::SHORT);
        $directories = [$this->directory('one'), $this->directory('two')];
        $outcomes = $this->ticking($executor, $directories);
        $this->loseReplies();
        $this->agentAt($redis->socketUrl(), $this->queue(), 2, ...self::SHORT);

        self::assertEquals([2, 2], Future\await($outcomes));
        foreach ($directories as $directory) {
            self::assertLessThan(
                self::tick("{$directory}/2.began"),
                self::tick("{$directory}/1.ran"),
                'it never runs twice at once',
            );
        }
        self::assertSame([2, 0], [$this->statistics()['done_total'], $this->statistics()['dead']]);
        self::assertLessThan(30, $this->engineInfo('total_connections_received'), 'it asks less and less often');
        $this->passReplies();
        self::assertTrue($deaf->isRunning());
    }

    public function testAnAgentThatIsCutOffForLongGoesOnUnderANewLease(): void
    {
        $redis = $this->engine();
        $machine = $this->machine();
        $executor = $this->executor(new RedisBroker($redis->socketUrl()));
        $this->agentThere($machine, ...self::SHORT);
        $directories = [$this->directory('one'), $this->directory('two')];
        $outcomes = $this->ticking($executor, $directories);
        $this->cutOff($machine);
        $cut = hrtime(true);
        $other = $this->agentAt($redis->socketUrl(), $this->queue(), 2, ...self::SHORT);

        self::assertEquals([2, 2], Future\await($outcomes));
        foreach ($directories as $directory) {
            self::assertLessThan(
                self::tick("{$directory}/2.began"),
                self::tick("{$directory}/1.ran"),
                'it never runs twice at once',
            );
        }
        delay(max(0.0, (Scale::isFull() ? 60.0 : 3.0) - (hrtime(true) - $cut) / 1e9));
        $this->stop($other);
        $this->reconnect($machine);

        self::assertSame(7, $executor->submit(static fn(): int => 7)->await());
        self::assertSame([3, 0], [$this->statistics()['done_total'], $this->statistics()['dead']]);
    }

    public function testTheTasksOfAMachineThatDiesRunElsewhereWithin15Seconds(): void
    {
        $redis = $this->engine();
        $executor = $this->executor(new RedisBroker($redis->socketUrl()));
        $times = [];
        for ($round = 1; $round <= max(1, intdiv(Scale::of(20), 2)); ++$round) {
            $machine = $this->machine();
            $agent = $this->agentThere($machine);
            $directories = [$this->directory("{$round}-one"), $this->directory("{$round}-two")];
            $outcomes = $this->ticking($executor, $directories);
            $other = $this->agentAt($redis->socketUrl(), $this->queue());
            $this->cutOff($machine);
            $this->signalMachine($machine, \SIGSTOP);
            $died = hrtime(true) / 1e9;

            self::assertEquals([2, 2], Future\await($outcomes));
            foreach ($directories as $directory) {
                $times[] = self::tick("{$directory}/2.began") - $died;
            }
            $this->removeMachines();
            Eventually::holds(static fn(): bool => !$agent->isRunning(), 'it is gone');
            $this->stop($other);
        }
        sort($times);
        self::assertNotSame([], $times);
        fwrite(
            \STDERR,
            'Seconds until the tasks of a machine that died ran again: '
                . implode(', ', array_map(static fn(float $time): string => \sprintf('%.1f', $time), $times))
                . "\n",
        );

        self::assertLessThan(15.0, max($times));
    }

    /**
     * Starts long tasks on the only agent, and waits until they run.
     *
     * @param list<string> $directories
     *
     * @return list<Future<mixed>>
     */
    private function ticking(RemoteExecutor $executor, array $directories): array
    {
        $outcomes = [];
        foreach ($directories as $directory) {
            $outcomes[] = $executor->submit(static fn(): int => CountedTasks::tick($directory, 1, 120.0));
        }
        foreach ($directories as $directory) {
            $this->waitForFile("{$directory}/1.began");
        }

        return $outcomes;
    }

    /** Drops all packets that the engine sends over its port. */
    private function loseReplies(): void
    {
        $this->orSkip(function (): void {
            self::need('nft');
            $table = 'sp' . bin2hex(random_bytes(5));
            self::command('nft', 'add', 'table', 'ip', $table);
            $this->table = $table;
            self::command('nft', 'add', 'chain', 'ip', $table, 'output', '{ type filter hook output priority 0; }');
            self::command(
                'nft',
                'add',
                'rule',
                'ip',
                $table,
                'output',
                'tcp',
                'sport',
                (string) $this->engine()->port,
                'drop',
            );
        });
    }

    #[After(10)]
    protected function passReplies(): void
    {
        if ($this->table !== '') {
            $table = $this->table;
            $this->table = '';
            self::command('nft', 'delete', 'table', 'ip', $table);
        }
    }

    /** @return string its name */
    private function machine(): string
    {
        return $this->orSkip(fn(): string => $this->connectMachine($this->engine()));
    }

    private function agentThere(string $machine, float ...$options): Process
    {
        return $this->agentOn($machine, $this->engine(), $this->queue(), 2, ...$options);
    }

    /**
     * @template T
     *
     * @param \Closure(): T $change of the network
     *
     * @return T
     */
    private function orSkip(\Closure $change): mixed
    {
        try {
            return $change();
        } catch (\RuntimeException $failure) {
            self::markTestSkipped($failure->getMessage());
        }
    }
}

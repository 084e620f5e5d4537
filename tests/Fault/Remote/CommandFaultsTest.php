<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Remote;

use PHPUnit\Framework\TestCase;
use Spindle\Command\Command;
use Spindle\Command\CommandPool;
use Spindle\Command\CommandPoolOptions;
use Spindle\Command\CommandResult;
use Spindle\Remote\JobLostException;
use Spindle\Remote\JobStatus;
use Spindle\Remote\RedisBroker;
use Spindle\Remote\RemoteCommands;
use Spindle\Remote\RemoteOptions;
use Spindle\Tests\Async;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\Eventually;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Processes;
use Spindle\Tests\Remote\Redis;
use Spindle\Tests\Remote\RunsAgents;
use Spindle\Tests\Scale;

/** Processes that die between a command and its result. */
final class CommandFaultsTest extends TestCase
{
    use EndsInTime;
    use OwnDirectory;
    use RunsAgents;

    /** Short lease, heartbeat and lease margin in seconds. */
    private const SHORT = [2.0, 0.2, 0.8];

    private string $queue = '';

    protected function deadline(): int
    {
        return 120 + 10 * Scale::of(20);
    }

    public function testACommandWhoseAgentIsKilledRunsOnAnotherAndHasOneResult(): void
    {
        $pool = $this->pool();
        for ($i = 1; $i <= Scale::of(10); ++$i) {
            $agent = $this->agent($this->queue(), 2, ...self::SHORT);
            $run = Async::run(fn(): array => iterator_to_array($pool->run(['key' => $this->lingering("first{$i}")])));
            $first = $this->started("first{$i}");
            $agent->signal(\SIGKILL);
            $other = $this->agent($this->queue(), 2, ...self::SHORT);
            $results = $run->await();

            self::assertSame(['key'], array_keys($results));
            self::assertSame(
                ["again\n", 0, 1],
                [$results['key']->stdout(), $results['key']->exitCode, $results['key']->attempts],
            );
            self::assertFalse(Processes::isAlive($first), 'what ran there has ended with its agent');
            $this->stop($other);
        }
        $statistics = $this->statistics();
        self::assertSame(
            [Scale::of(10), Scale::of(10), 0],
            [$statistics['lost_total'], $statistics['done_total'], $statistics['dead']],
        );
    }

    public function testACommandThatIsTheEndOfItsAgentsFailsAlone(): void
    {
        $pool = $this->pool(maxCrashes: 1);
        $agent = $this->agent($this->queue(), 2, ...self::SHORT);
        $run = Async::run(fn(): CommandResult => $pool->execute($this->lingering('first')));
        $this->started('first');
        $agent->signal(\SIGKILL);
        $this->agent($this->queue(), 2, ...self::SHORT);
        $result = $run->await();

        self::assertFalse($result->succeeded());
        self::assertFalse($result->cancelled);
        self::assertStringContainsString('its agent was lost', $result->describe());
        $dead = array_values($this->broker()->listJobs($this->queue(), JobStatus::Dead, 10));
        self::assertCount(1, $dead);
        self::assertSame('its agent was lost', $dead[0]['reason']);
        self::assertTrue($pool->execute(Command::of('true'))->succeeded());
    }

    public function testACommandWhoseLauncherIsKilledRunsAgainAtTheSameAgent(): void
    {
        $agent = $this->agent($this->queue(), 1);
        $pool = $this->pool();
        $run = Async::run(fn(): CommandResult => $pool->execute($this->lingering('first')));
        $this->started('first');
        $launchers = Processes::launchers((int) $agent->getPid());
        self::assertCount(1, $launchers);
        posix_kill($launchers[0], \SIGKILL);

        self::assertSame("again\n", $run->await()->stdout());
        self::assertSame([0, 0], [$this->statistics()['lost_total'], $this->statistics()['retried_total']]);
    }

    public function testAnAgentThatStopsFinishesTheCommandThatRuns(): void
    {
        $agent = $this->agent($this->queue(), 1);
        $pool = $this->pool();
        $commands = [
            Command::shell("echo \$\$ > {$this->path('first')}; sleep 0.5; echo finished"),
            Command::of('echo', 'waited'),
        ];
        $run = Async::run(static fn(): array => iterator_to_array($pool->run($commands)));
        $this->started('first');
        $agent->signal(\SIGTERM);
        Eventually::holds(static fn(): bool => !$agent->isRunning(), 'it has ended');
        $this->agent($this->queue(), 1);
        $results = $run->await();

        self::assertSame(["finished\n", "waited\n"], [$results[0]->stdout(), $results[1]->stdout()]);
        self::assertSame(0, $this->statistics()['lost_total']);
    }

    public function testACancelledCommandOfALostAgentFailsAfterTheBrokerRetryTimeout(): void
    {
        $agent = $this->agent($this->queue(), 1, ...self::SHORT);
        $pool = $this->pool(options: new RemoteOptions(brokerRetryTimeout: 0.5));
        $run = Async::run(fn(): array => iterator_to_array($pool->run([$this->lingering('first')])));
        $this->started('first');
        $agent->signal(\SIGKILL);
        $pool->cancelAll();

        $this->expectException(JobLostException::class);
        $this->expectExceptionMessage('no agent has reported its end');
        $run->await();
    }

    public function testAFullQueueIsWaitedFor(): void
    {
        $pool = $this->pool(options: new RemoteOptions(maxJobs: 2));
        $run = Async::run(
            static fn(): array => iterator_to_array($pool->run(array_fill(0, 10, Command::of('echo', 'x')))),
        );
        Eventually::holds(fn(): bool => $this->statistics()['waiting'] === 2, 'it is full');
        $this->agent($this->queue());

        self::assertCount(10, $run->await());
    }

    public function testACommandThatIsTooLargeForAQueueFailsAlone(): void
    {
        $this->agent($this->queue());
        $results = iterator_to_array($this->pool(options: new RemoteOptions(maxPayloadBytes: 1000))->run([
            'before' => Command::of('echo', 'before'),
            'large' => Command::of('cat')->withInput(str_repeat('x', 1000)),
            'after' => Command::of('echo', 'after'),
        ]));

        self::assertSame(["before\n", "after\n"], [$results['before']->stdout(), $results['after']->stdout()]);
        self::assertFalse($results['large']->succeeded());
        self::assertStringContainsString('The limit is 1000 ', (string) $results['large']->error);
        self::assertSame([2, 0], [$this->statistics()['done_total'], $this->statistics()['waiting']]);
    }

    public function testOutputBeyondTheLimitOfItsAgentIsAnErrorOfItsCommandAlone(): void
    {
        $this->agent($this->queue());
        $results = iterator_to_array($this->pool()->run([
            'large' => Command::of('head', '-c', '17000000', '/dev/zero'),
            'other' => Command::of('head', '-c', '1000000', '/dev/zero'),
        ]));

        self::assertSame(1_000_000, \strlen($results['other']->stdout()));
        self::assertSame([null, ''], [$results['large']->exitCode, $results['large']->stdout()]);
        self::assertStringContainsString('output of 17000000 bytes exceeds', $results['large']->describe());
        self::assertFalse($results['large']->succeeded());
    }

    public function testLargeOutcomesThatWereReadAreNotKept(): void
    {
        $this->agent($this->queue());
        $pool = $this->pool();
        foreach ($pool->run(array_fill(0, 8, Command::of('head', '-c', '3000000', '/dev/zero'))) as $result) {
            self::assertTrue($result->succeeded());
        }

        Eventually::holds(
            fn(): bool => \count((array) Redis::shared()->command('KEYS', "spindle:{{$this->queue()}}:result:*")) <= 1,
            'they are gone',
        );
    }

    public function testASecretInTheEnvironmentIsInNoCommandLineAndInNoLog(): void
    {
        $agent = $this->agent($this->queue());
        $secret = 'secret-' . bin2hex(random_bytes(8));
        $pool = $this->pool();
        $command = Command::shell(
            "echo \$\$ > {$this->path('first')}; until test -e {$this->path('go')}; do sleep 0.05; done; "
                . 'echo "$TOKEN"; exit 3',
        )->withEnvironment(['TOKEN' => $secret])->withInput($secret);
        $run = Async::run(static fn(): CommandResult => $pool->execute($command));
        $this->started('first');
        foreach ((array) glob('/proc/[0-9]*/cmdline') as $file) {
            self::assertStringNotContainsString($secret, (string) @file_get_contents((string) $file));
        }
        self::assertStringNotContainsString(
            $secret,
            print_r($this->broker()->listJobs($this->queue(), JobStatus::Running, 10), true),
        );
        touch($this->path('go'));

        self::assertSame("{$secret}\n", $run->await()->stdout());
        self::assertStringNotContainsString($secret, $run->await()->describe());
        $this->stop($agent);
        self::assertStringNotContainsString($secret, $agent->getOutput() . $agent->getErrorOutput());
    }

    private function pool(int $maxCrashes = 3, RemoteOptions $options = new RemoteOptions()): CommandPool
    {
        return new CommandPool(
            4,
            0,
            new CommandPoolOptions(
                transport: new RemoteCommands($this->broker(), $this->queue(), self::keys(), $maxCrashes, $options),
            ),
        );
    }

    private function broker(): RedisBroker
    {
        return new RedisBroker(Redis::shared()->url());
    }

    private function queue(): string
    {
        return $this->queue === '' ? $this->queue = self::newQueue() : $this->queue;
    }

    /** @return array<string, int> */
    private function statistics(): array
    {
        return $this->broker()->statistics($this->queue());
    }

    /** Returns a command that takes long in its first run. */
    private function lingering(string $name): Command
    {
        return Command::shell(
            "test -e {$this->path($name)} && { echo again; exit; }; echo \$\$ > {$this->path($name)}; exec sleep 100",
        );
    }

    /** @return int its process */
    private function started(string $name): int
    {
        Eventually::holds(fn(): bool => (int) @file_get_contents($this->path($name)) > 0, 'it has started');

        return (int) file_get_contents($this->path($name));
    }
}

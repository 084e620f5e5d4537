<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Remote;

use Amp\Future;
use PHPUnit\Framework\Attributes\After;
use PHPUnit\Framework\TestCase;
use Spindle\Remote\BrokerUnavailableException;
use Spindle\Remote\RedisBroker;
use Spindle\Remote\RemoteExecutor;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\Eventually;
use Spindle\Tests\LeavesNothing;
use Spindle\Tests\Scale;
use Spindle\Tests\Text;
use Symfony\Component\Process\Process;

use function Amp\delay;

/** What a network does to agents and callers, with the kernel's own means: packets that get lost one way, links that go down. Root only. */
final class NetworkFaultsTest extends TestCase
{
    use EndsInTime;
    use LeavesNothing;
    use OwnEngine;

    /** What the addresses of the link to another machine begin with, of a network that is for tests of networks (RFC 2544). */
    private string $network = '';

    /** Of nft's table, and of the namespace; an interface's name has 15 characters at most. */
    private string $name = '';

    private bool $losesReplies = false;
    private bool $hasMachine = false;

    protected function deadline(): int
    {
        return 120 + 20 * Scale::of(20);
    }

    public function testASubmissionWhoseAnswerIsLostIsThereOnce(): void
    {
        $log = $this->file('log', '');
        $executor = $this->executor(new RedisBroker($this->engine()->address(), timeout: 0.5), patience: 0.0);
        $executor->dispatch(static fn(): int => Work::note($log), 'first');
        $this->loseReplies();
        try {
            $executor->dispatch(static fn(): int => Work::note($log), 'second');
            self::fail('It got no answer');
        } catch (BrokerUnavailableException $failure) {
            self::assertStringContainsString('no answer within 0.5 seconds', $failure->getMessage());
        }
        self::assertSame(2, $this->figures()['submitted_total'], 'it was done');
        $this->passReplies();
        $executor->dispatch(static fn(): int => Work::note($log), 'second');
        $this->agentAt($this->engine()->socketAddress(), $this->queue());

        self::assertSame([1, 1], [$executor->attach('first')->await(), $executor->attach('second')->await()]);
        self::assertSame(2, $this->figures()['submitted_total']);
        self::assertEqualsCanonicalizing(['first', 'second'], Text::lines($log));
    }

    public function testAnAgentThatHearsNothingEndsItsWorkBeforeOthersHaveIt(): void
    {
        $redis = $this->engine();
        $executor = $this->executor(new RedisBroker($redis->socketAddress()));
        $deaf = $this->agentAt($redis->address(), $this->queue(), 2, ...self::SHORT);
        $directories = [$this->directory('one'), $this->directory('two')];
        $outcomes = $this->ticking($executor, $directories);
        $this->loseReplies();
        $this->agentAt($redis->socketAddress(), $this->queue(), 2, ...self::SHORT);

        self::assertEquals([2, 2], Future\await($outcomes));
        foreach ($directories as $directory) {
            self::assertLessThan(self::tick("{$directory}/2.began"), self::tick("{$directory}/1.ran"), 'it never runs twice at once');
        }
        self::assertSame([2, 0], [$this->figures()['done_total'], $this->figures()['dead']]);
        self::assertLessThan(30, $this->engineSays('total_connections_received'), 'it asks less and less often');
        $this->passReplies();
        self::assertTrue($deaf->isRunning());
    }

    public function testAnAgentThatIsCutOffForLongGoesOnUnderANewLease(): void
    {
        $redis = $this->engine();
        $this->connectMachine();
        $executor = $this->executor(new RedisBroker($redis->socketAddress()));
        $this->agentThere(...self::SHORT);
        $directories = [$this->directory('one'), $this->directory('two')];
        $outcomes = $this->ticking($executor, $directories);
        $this->command('ip', 'link', 'set', "{$this->name}a", 'down');
        $cut = hrtime(true);
        $other = $this->agentAt($redis->socketAddress(), $this->queue(), 2, ...self::SHORT);

        self::assertEquals([2, 2], Future\await($outcomes));
        foreach ($directories as $directory) {
            self::assertLessThan(self::tick("{$directory}/2.began"), self::tick("{$directory}/1.ran"), 'it never runs twice at once');
        }
        delay(max(0.0, (Scale::isFull() ? 60.0 : 3.0) - (hrtime(true) - $cut) / 1e9));
        $this->stop($other);
        $this->command('ip', 'link', 'set', "{$this->name}a", 'up');

        self::assertSame(7, $executor->submit(static fn(): int => 7)->await());
        self::assertSame([3, 0], [$this->figures()['done_total'], $this->figures()['dead']]);
    }

    public function testTheTasksOfAMachineThatDiesRunElsewhereWithin15Seconds(): void
    {
        $redis = $this->engine();
        $executor = $this->executor(new RedisBroker($redis->socketAddress()));
        $times = [];
        for ($round = 1; $round <= max(1, intdiv(Scale::of(20), 2)); ++$round) {
            $this->connectMachine();
            $agent = $this->agentThere();
            $directories = [$this->directory("{$round}-one"), $this->directory("{$round}-two")];
            $outcomes = $this->ticking($executor, $directories);
            $other = $this->agentAt($redis->socketAddress(), $this->queue());
            $this->command('ip', 'link', 'set', "{$this->name}a", 'down');
            $this->signalMachine(\SIGSTOP);
            $died = hrtime(true) / 1e9;

            self::assertEquals([2, 2], Future\await($outcomes));
            foreach ($directories as $directory) {
                $times[] = self::tick("{$directory}/2.began") - $died;
            }
            $this->removeMachine();
            Eventually::holds(static fn(): bool => !$agent->isRunning(), 'it is gone');
            $this->stop($other);
        }
        sort($times);
        self::assertNotSame([], $times);
        fwrite(\STDERR, 'Seconds until the tasks of a machine that died ran again: ' . implode(', ', array_map(static fn(float $time): string => \sprintf('%.1f', $time), $times)) . "\n");

        self::assertLessThan(15.0, max($times));
    }

    #[After(10)]
    protected function restoreNetwork(): void
    {
        $this->passReplies();
        $this->removeMachine();
    }

    /**
     * Tasks that run already, on the only agent there is, and would for long.
     *
     * @param list<string> $directories
     *
     * @return list<Future<mixed>>
     */
    private function ticking(RemoteExecutor $executor, array $directories): array
    {
        $outcomes = [];
        foreach ($directories as $directory) {
            $outcomes[] = $executor->submit(static fn(): int => Work::tick($directory, 1, 120.0));
        }
        foreach ($directories as $directory) {
            $this->waitForFile("{$directory}/1.began");
        }

        return $outcomes;
    }

    /** From now on nothing that the engine sends over its port arrives. */
    private function loseReplies(): void
    {
        $this->needs('nft');
        $this->command('nft', 'add', 'table', 'ip', $this->name);
        $this->losesReplies = true;
        $this->command('nft', 'add', 'chain', 'ip', $this->name, 'output', '{ type filter hook output priority 0; }');
        $this->command('nft', 'add', 'rule', 'ip', $this->name, 'output', 'tcp', 'sport', (string) $this->engine()->port, 'drop');
    }

    private function passReplies(): void
    {
        if ($this->losesReplies) {
            $this->losesReplies = false;
            $this->command('nft', 'delete', 'table', 'ip', $this->name);
        }
    }

    /** Another machine, as far as the network goes. */
    private function connectMachine(): void
    {
        $this->needs('ip');
        $this->network = '198.18.' . random_int(0, 255);
        $this->command('ip', 'netns', 'add', $this->name);
        $this->hasMachine = true;
        $this->command('ip', 'route', 'add', 'blackhole', "{$this->network}.0/30", 'metric', '1000'); // what is sent while the link is down goes nowhere else
        $this->command('ip', 'link', 'add', "{$this->name}a", 'type', 'veth', 'peer', 'name', "{$this->name}b", 'netns', $this->name);
        $this->command('ip', 'address', 'add', "{$this->network}.1/30", 'dev', "{$this->name}a");
        $this->command('ip', 'link', 'set', "{$this->name}a", 'up');
        $this->command('ip', '-n', $this->name, 'address', 'add', "{$this->network}.2/30", 'dev', "{$this->name}b");
        $this->command('ip', '-n', $this->name, 'link', 'set', "{$this->name}b", 'up');
        $this->engine()->command('CONFIG', 'SET', 'bind', "127.0.0.1 {$this->network}.1");
    }

    private function agentThere(float ...$options): Process
    {
        $address = str_replace('@127.0.0.1', "@{$this->network}.1", $this->engine()->address());

        return $this->agentWithin(['ip', 'netns', 'exec', $this->name], self::environment(), $address, $this->queue(), 2, ...$options);
    }

    private function signalMachine(int $signal): void
    {
        exec("ip netns pids {$this->name}", $pids);
        foreach ($pids as $pid) {
            posix_kill((int) $pid, $signal);
        }
    }

    private function removeMachine(): void
    {
        if ($this->hasMachine) {
            $this->hasMachine = false;
            $this->signalMachine(\SIGKILL);
            $this->command('ip', 'netns', 'delete', $this->name);
            exec("ip link delete {$this->name}a 2>/dev/null; ip route delete blackhole {$this->network}.0/30 metric 1000"); // the link may have gone with its other end
        }
    }

    private function needs(string $program): void
    {
        if (posix_geteuid() !== 0) {
            self::markTestSkipped('Only root may change the network');
        }
        exec("PATH=\$PATH:/usr/sbin command -v {$program}", $path, $status);
        if ($status !== 0) {
            self::markTestSkipped("There is no {$program} here");
        }
        $this->name = $this->name === '' ? 'sp' . bin2hex(random_bytes(5)) : $this->name;
    }

    private function command(string ...$words): void
    {
        $process = new Process($words, env: self::environment());
        $process->run();
        if (!$process->isSuccessful()) {
            self::markTestSkipped("The network can't be changed here: " . trim($process->getErrorOutput()));
        }
    }

    /** @return array<string, string> */
    private static function environment(): array
    {
        return ['PATH' => getenv('PATH') . ':/usr/sbin:/sbin'];
    }
}

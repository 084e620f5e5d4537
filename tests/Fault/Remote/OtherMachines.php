<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Remote;

use PHPUnit\Framework\Attributes\After;
use Spindle\Internal\Testing\Program;
use Spindle\Remote\Testing\TemporaryRedis;
use Spindle\Tests\Remote\RunsAgents;
use Symfony\Component\Process\Process;

/** Simulated machines: network namespaces, each with a link to this machine that can be cut. Root only. */
trait OtherMachines
{
    use RunsAgents;

    /**
     * A helper script that removes everything when its input ends or this process is gone. A machine's link and
     * namespace have the same name.
     */
    private const REMOVE = <<<'SH'
        PATH=$PATH:/usr/sbin:/sbin
        read -r _
        for machine in $(ip netns list | grep -o "^$1[^ ]*"); do
            while pids=$(ip netns pids "$machine") && [ -n "$pids" ]; do
                kill -KILL $pids
                sleep 0.01
            done
            ip link delete "$machine"
            ip netns delete "$machine"
        done
        ip link delete "$1"
        ! { ip netns list; ip -oneline link; } | grep -q "$1"
        SH;

    /**
     * Name of the bridge that connects all links, and prefix of the machines' names. An interface's name has at most 15
     * characters.
     */
    private string $bridge = '';

    /** Prefix of all addresses, from the network for benchmarks (RFC 2544). */
    private string $network = '';

    private int $machines = 0;

    /** @var array{resource, resource}|null the process of {@see self::REMOVE}, and the pipe that it reads */
    private ?array $guardian = null;

    /**
     * @return string its name
     *
     * @throws \RuntimeException when the system does not allow it
     */
    private function connectMachine(TemporaryRedis $redis): string
    {
        if ($this->guardian === null) {
            $this->makeNetwork();
        }
        $machine = "{$this->bridge}m" . ++$this->machines;
        self::command('ip', 'netns', 'add', $machine);
        self::command('ip', 'link', 'add', $machine, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', $machine);
        self::command('ip', 'link', 'set', $machine, 'master', $this->bridge, 'up');
        self::command(
            'ip',
            '-n',
            $machine,
            'address',
            'add',
            "{$this->network}." . (1 + $this->machines) . '/24',
            'dev',
            'eth0',
        );
        self::command('ip', '-n', $machine, 'link', 'set', 'eth0', 'up');
        $this->listenToMachines($redis);

        return $machine;
    }

    /**
     * Adds the bridge with its address, which does not depend on the links. So an engine can listen while they are
     * down.
     */
    private function makeNetwork(): void
    {
        self::need('ip');
        $this->bridge = 'sp' . bin2hex(random_bytes(5));
        $this->network = '198.18.' . random_int(0, 255);
        $this->machines = 0;
        $this->guardian = Program::startGuardian(['/bin/sh', '-c', self::REMOVE, 'sh', $this->bridge]);
        self::command('ip', 'link', 'add', $this->bridge, 'type', 'bridge');
        self::command('ip', 'address', 'add', "{$this->network}.1/24", 'dev', $this->bridge);
        self::command('ip', 'link', 'set', $this->bridge, 'up');
    }

    /** Must be called again after a restart of the engine. */
    private function listenToMachines(TemporaryRedis $redis): void
    {
        $redis->command('CONFIG', 'SET', 'bind', "127.0.0.1 {$this->network}.1");
    }

    private function agentOn(
        string $machine,
        TemporaryRedis $redis,
        string $queue,
        int $workers,
        float ...$options,
    ): Process {
        $address = str_replace('@127.0.0.1', "@{$this->network}.1", $redis->url());

        return $this->agentWithin(
            ['ip', 'netns', 'exec', $machine],
            self::environment(),
            $address,
            $queue,
            $workers,
            ...$options,
        );
    }

    /** Drops all packets silently, in both directions. */
    private function cutOff(string $machine): void
    {
        self::command('ip', 'link', 'set', $machine, 'down');
    }

    private function reconnect(string $machine): void
    {
        self::command('ip', 'link', 'set', $machine, 'up');
    }

    private function signalMachine(string $machine, int $signal): void
    {
        preg_match_all('/\d+/', self::command('ip', 'netns', 'pids', $machine), $pids);
        foreach ($pids[0] as $pid) {
            posix_kill((int) $pid, $signal);
        }
    }

    #[After(10)]
    protected function removeMachines(): void
    {
        if ($this->guardian !== null) {
            [$process, $pipe] = $this->guardian;
            $this->guardian = null;
            fwrite($pipe, "\n");
            fclose($pipe);
            self::assertSame(0, proc_close($process), 'The network is as it was');
        }
    }

    /** @throws \RuntimeException */
    private static function need(string $program): void
    {
        if (posix_geteuid() !== 0) {
            throw new \RuntimeException('Only root may change the network');
        }
        exec("PATH=\$PATH:/usr/sbin command -v {$program}", $path, $status);
        if ($status !== 0) {
            throw new \RuntimeException("There is no {$program} here");
        }
    }

    /** @throws \RuntimeException */
    private static function command(string ...$words): string
    {
        $process = new Process($words, env: self::environment());
        $process->run();
        if (!$process->isSuccessful()) {
            throw new \RuntimeException("The network can't be changed here: " . trim($process->getErrorOutput()));
        }

        return $process->getOutput();
    }

    /** @return array<string, string> */
    private static function environment(): array
    {
        return ['PATH' => getenv('PATH') . ':/usr/sbin:/sbin'];
    }
}

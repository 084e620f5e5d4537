<?php

declare(strict_types=1);

namespace Spindle\Bench\Remote;

use Spindle\Bench\Http\Child;
use Spindle\Bench\Http\PrivateDirectory;
use Spindle\Bench\Support\Checkout;
use Spindle\Bench\Support\Signals;
use Spindle\Remote\Durability;
use Spindle\Remote\RedisBroker;
use Spindle\Remote\RemoteExecutor;
use Spindle\Remote\SigningKeys;
use Spindle\Remote\Testing\TemporaryRedis;

/**
 * A temporary engine, with agents and a script as separate processes. The destructors end all of them.
 */
final readonly class Rig
{
    public const QUEUE = 'bench';
    public const WORKERS = 2;

    /** Seconds after which agents must serve their queue. */
    public const START_TIMEOUT = 15.0;

    private const POLL_INTERVAL = 0.02;

    public RedisBroker $broker;

    private string $address;
    private string $keys;

    private function __construct(
        public TemporaryRedis $redis,
        private PrivateDirectory $directory,
        private Checkout $checkout,
    ) {
        $this->broker = new RedisBroker($redis->url());
        $this->address = $this->secret('address', $redis->url());
        $this->keys = $this->secret('keys', bin2hex(random_bytes(32)));
    }

    /**
     * Starts an engine without agents.
     *
     * @param Checkout|null $checkout the Spindle of the agents and the script; null for this checkout
     *
     * @throws \RuntimeException
     */
    public static function start(Durability $durability, ?Checkout $checkout = null): self
    {
        $rig = Signals::withoutInterruption(static fn(): self => new self(
            TemporaryRedis::start(['appendfsync' => $durability === Durability::Durable ? 'always' : 'everysec']),
            new PrivateDirectory(),
            $checkout ?? Checkout::alone(),
        ));
        $promised = $rig->broker->durability();

        return $promised === $durability
            ? $rig
            : throw new \RuntimeException("the durability of the engine is {$promised->value}");
    }

    /** Starts an agent without waiting for it. */
    public function agent(): Child
    {
        return PhpProcess::start(
            $this->directory,
            $this->checkout,
            'remote-agent.php',
            $this->address,
            $this->keys,
            (string) self::WORKERS,
        );
    }

    /**
     * Waits until these agents serve the queue.
     *
     * @param list<Child> $agents
     *
     * @throws \RuntimeException when one of them ends, or they take too long
     */
    public function await(array $agents): void
    {
        $end = hrtime(true) + self::START_TIMEOUT * 1e9;
        while ($this->broker->statistics(self::QUEUE)['agents'] !== \count($agents)) {
            $ended = array_filter($agents, static fn(Child $agent): bool => !$agent->isRunning()) !== [];
            if ($ended || hrtime(true) > $end) {
                throw new \RuntimeException(
                    ($ended ? 'an agent ended at its start: ' : 'the agents take too long to start: ')
                        . PhpProcess::log($this->directory),
                );
            }
            \Amp\delay(self::POLL_INTERVAL);
        }
    }

    public function executor(): RemoteExecutor
    {
        return new RemoteExecutor($this->broker, self::QUEUE, SigningKeys::fromFile($this->keys));
    }

    /** @return string the path of a file in a private directory */
    public function file(string $name): string
    {
        return "{$this->directory->path}/{$name}";
    }

    /** Returns the folder of the append-only file. */
    public function data(): string
    {
        return "{$this->redis->directory}/data";
    }

    /**
     * Runs a script with one agent. No other process reads the engine's data, because key names may differ in another
     * checkout.
     *
     * @return array<string, mixed> its figures
     *
     * @throws \RuntimeException when it printed none
     */
    public function measure(Measurement $what, int $tasks): array
    {
        $agent = $this->agent();
        $options = [
            '--address',
            $this->address,
            '--keys',
            $this->keys,
            '--agent',
            (string) $agent->tree->pids()[0],
            '--engine',
            (string) $this->redis->pid(),
        ];
        $before = $this->moved();
        try {
            $figures = PhpProcess::figures($this->directory, $this->checkout, $what, $tasks, ...$options);
        } finally {
            $agent->stop();
        }
        $all = \is_int($figures['submitted'] ?? null) ? max(1, $figures['submitted']) : 1;
        foreach ($this->moved() as $name => $bytes) {
            $figures[$name] = ($bytes - $before[$name]) / $all;
        }

        return $figures;
    }

    /** Returns a number from the engine's INFO; 0 when it is missing. */
    public function info(string $section, string $name): int
    {
        $info = $this->redis->command('INFO', $section);

        return \is_string($info) && preg_match("/^{$name}:(\d+)/m", $info, $match) === 1 ? (int) $match[1] : 0;
    }

    /** @return array<string, int> bytes that the engine has read and sent, and the size of its append-only file */
    private function moved(): array
    {
        return [
            'bytes in' => $this->info('stats', 'total_net_input_bytes'),
            'bytes out' => $this->info('stats', 'total_net_output_bytes'),
            'bytes file' => $this->info('persistence', 'aof_current_size'),
        ];
    }

    /**
     * Runs a script with a local pool, without an engine.
     *
     * @return array<string, mixed> its figures
     *
     * @throws \RuntimeException when it printed none
     */
    public static function local(Measurement $what, int $tasks, Checkout $checkout): array
    {
        return PhpProcess::figures(new PrivateDirectory(), $checkout, $what, $tasks);
    }

    private function secret(string $name, #[\SensitiveParameter] string $content): string
    {
        $path = $this->directory->write($name, $content);
        chmod($path, 0o600);

        return $path;
    }
}

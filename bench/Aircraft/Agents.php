<?php

declare(strict_types=1);

namespace Spindle\Bench\Aircraft;

use Predis\Client;
use Spindle\Bench\Http\PrivateDirectory;
use Spindle\Bench\Http\Processes;
use Spindle\Bench\Http\Servers as HttpServers;
use Spindle\Bench\Support\Program;
use Spindle\Bench\Support\Signals;
use Spindle\Remote\RedisBroker;
use Spindle\Remote\Testing\TemporaryRedis;

/** Agents that render certificates, with their Redis. The destructor ends all of them. */
final readonly class Agents
{
    private const AGENTS = 2;
    private const QUEUE = 'certificates';

    /** Runs a command with environment variables from a file, because a password does not belong in a command line. */
    private const WITH_ENVIRONMENT_FILE = ['sh', '-c', 'set -a; . "$0"; exec "$@"'];

    private string $environment;

    private Processes $processes;

    private function __construct(private PrivateDirectory $directory, private TemporaryRedis $redis, Cores $cores)
    {
        $cores->moveToBackground((int) $redis->pid());
        $this->environment = $this->write('environment', implode("\n", array_map(
            static fn(string $name, string $value): string => "{$name}=" . escapeshellarg($value),
            ['AIRCRAFT_BROKER', 'SPINDLE_BROKER', 'SPINDLE_KEY_FILE'],
            [$redis->url(), $redis->url(), $this->write('key', bin2hex(random_bytes(32)))],
        )));
        $this->processes = new Processes($directory, array_fill(0, self::AGENTS, [
            ...$cores->background(), ...$this->before(), \PHP_BINARY, ...HttpServers::PHP_OPTIONS, \dirname(
                __DIR__,
                2,
            ) . '/bin/spindle', 'work',
            '--queue', self::QUEUE, '--workers', '1', '--bootstrap', __DIR__ . '/agents-worker.php', '--quiet',
            ...(posix_geteuid() === 0 ? ['--allow-root'] : []),
        ]));
    }

    public function __destruct()
    {
        $this->processes->stop();
        $this->redis->stop();
    }

    /**
     * Starts the agents, and waits until they serve their queue.
     *
     * @throws \RuntimeException when they do not serve it in time
     */
    public static function start(Cores $cores): self
    {
        $agents = Signals::withoutInterruption(
            static fn(): self => new self(new PrivateDirectory(), TemporaryRedis::start(), $cores),
        );
        $broker = new RedisBroker($agents->redis->url());
        $agents->processes->await(static fn(): bool => $broker->statistics(self::QUEUE)['agents'] === self::AGENTS);
        array_map($cores->moveToBackground(...), $agents->processes->pids());

        return $agents;
    }

    /** Returns why agents are not available; null when they are. */
    public static function missing(): ?string
    {
        return match (true) {
            !class_exists(Client::class) => 'the package predis/predis is not installed',
            Program::find('redis-server') === null && Program::find('valkey-server') === null
                => 'neither redis-server nor valkey-server is on PATH',
            Program::find('chrt') === null || Program::find('setsid') === null => 'chrt or setsid is not on PATH',
            default => null,
        };
    }

    /** @return non-empty-list<string> prefix of the command of a server that uses the agents */
    public function before(): array
    {
        return [...self::WITH_ENVIRONMENT_FILE, $this->environment];
    }

    /** @return string the path of a file that only its owner can read */
    private function write(string $name, #[\SensitiveParameter] string $content): string
    {
        $path = $this->directory->write($name, $content);
        chmod($path, 0o600);

        return $path;
    }
}

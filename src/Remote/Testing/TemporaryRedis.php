<?php

declare(strict_types=1);

namespace Spindle\Remote\Testing;

use Spindle\Internal\NotCopyable;
use Spindle\Internal\Testing\FreePort;
use Spindle\Internal\Testing\GuardianProcess;
use Spindle\Internal\Testing\PrivateDirectory;
use Spindle\Internal\Testing\ServerException;
use Spindle\Internal\Testing\TestServer;
use Spindle\Internal\Testing\TestServerSettings;
use Spindle\LauncherException;
use Spindle\Remote\Testing\Internal\Configuration;
use Spindle\Remote\Testing\Internal\RedisLeftovers;
use Spindle\Remote\Testing\Internal\ServerBinary;
use Spindle\Remote\Testing\Internal\TestRedisClient;

/**
 * A temporary Redis or Valkey server for tests. This class runs the installed program in a private directory.
 *
 * {@see stop()} kills the server and removes its files. The same happens when PHP destroys this object or the process
 * ends, even by SIGKILL.
 *
 * The server listens on 127.0.0.1 and on a Unix socket, and requires a password on both.
 *
 * A fork of the process may use the server, but can't stop or restart it. All methods block, also within an event loop.
 */
final class TemporaryRedis
{
    use NotCopyable;

    private const SIGTERM = 15;

    /** Signals before SIGKILL, and the seconds that the server has after each signal to save its data and exit. */
    private const SIGNAL_TIMEOUTS = [self::SIGTERM => 5.0];

    /** Time limit of one readiness check in seconds. A check that fails is repeated. */
    private const READINESS_TIMEOUT = 1.0;

    /**
     * @param int|null $tlsPort   null without a certificate
     * @param float    $timeout   seconds that the server has for each start and each answer
     */
    private function __construct(
        public readonly int $port,
        #[\SensitiveParameter]
        public readonly string $password,
        public readonly string $directory,
        private readonly ?int $tlsPort,
        private readonly GuardianProcess $guardian,
        private readonly TestServer $server,
        private readonly float $timeout,
    ) {}

    public function __destruct()
    {
        $this->stop();
    }

    /** @return array<string, mixed> without the password */
    public function __debugInfo(): array
    {
        return ['port' => $this->port, 'directory' => $this->directory];
    }

    /**
     * Starts a server and returns when it accepts commands. By default the server has an append-only file with
     * "appendfsync everysec", no snapshots and no eviction.
     *
     * @param array<string, string|int|float|bool> $settings settings of redis.conf, such as ['appendfsync' => 'always',
     *                                                       'save' => '900 1 300 10', 'maxmemory' => '10mb']
     *
     * @throws TemporaryRedisException
     * @throws LauncherException when no command-line PHP was found for the process that removes the server later
     * @throws \ValueError       when a setting is reserved, such as the port, or can't be written in one line
     */
    public static function start(array $settings = [], ?TemporaryRedisOptions $options = null): self
    {
        TestServerSettings::check($settings, Configuration::RESERVED_SETTINGS, 'Redis', 'redis.conf');

        return TemporaryRedisException::convertingFrom(
            static fn(): self => self::create($settings, $options ?? new TemporaryRedisOptions()),
        );
    }

    /** Returns the URL for TCP, with the password: redis://:password@127.0.0.1:port */
    public function url(): string
    {
        return "redis://:{$this->password}@127.0.0.1:{$this->port}";
    }

    /** Returns the URL for the Unix socket, with the password: unix://:password@/path */
    public function socketUrl(): string
    {
        return "unix://:{$this->password}@{$this->directory}/socket";
    }

    /**
     * Returns the URL for TLS, with the password: rediss://:password@127.0.0.1:port
     *
     * @throws \LogicException when the server was started without TemporaryRedisOptions(certificate: ..., key: ...)
     */
    public function tlsUrl(): string
    {
        return $this->tlsPort === null
            ? throw new \LogicException(
                'This temporary Redis has no certificate. '
                    . 'Start it with TemporaryRedisOptions(certificate: ..., key: ...).',
            )
            : "rediss://:{$this->password}@127.0.0.1:{$this->tlsPort}";
    }

    /** Returns the server's process id; null if the server is not running. */
    public function pid(): ?int
    {
        return $this->server->pid();
    }

    /**
     * Sends one command over a new connection, and returns the answer.
     *
     * @param string ...$arguments the name of the command and its arguments
     *
     * @return mixed a string, an integer, null, or a list of these
     *
     * @throws TemporaryRedisException when the answer is an error, or does not arrive within the timeout
     */
    public function command(#[\SensitiveParameter] string ...$arguments): mixed
    {
        $arguments = array_values($arguments);
        $command = array_shift($arguments)
            ?? throw new \ValueError('No command was given: the first argument is its name');

        return (new TestRedisClient("{$this->directory}/socket", $this->password, $this->timeout))->call(
            $command,
            ...$arguments,
        );
    }

    /**
     * Returns the log that the server has written so far.
     *
     * @throws TemporaryRedisException when the log can't be read, such as after {@see stop()}, which removes the log
     */
    public function log(): string
    {
        return TemporaryRedisException::convertingFrom(
            fn(): string => $this->guardian->isDismissed()
                ? throw ServerException::noLog('the Redis was stopped')
                : $this->server->log(),
        );
    }

    /**
     * Kills the server with SIGKILL, and returns when the server has exited. Keeps the data for {@see restart()}.
     *
     * @throws \LogicException in a fork of the process that started the server, or after {@see stop()}
     */
    public function kill(): void
    {
        $this->guardian->check('Redis');
        $this->server->kill();
    }

    /**
     * Starts the server again with the same data, ports and socket. Shuts a running server down first. Returns when the
     * data is loaded and the server accepts commands.
     *
     * @throws TemporaryRedisException when the server does not start
     * @throws \LogicException         in a fork of the process that started the server, or after {@see stop()}
     */
    public function restart(): void
    {
        $this->guardian->check('Redis');
        $this->server->stop(self::SIGNAL_TIMEOUTS);
        TemporaryRedisException::convertingFrom(
            fn() => self::launch($this->server, $this->directory, $this->password, $this->timeout),
        );
    }

    /** Kills the server and removes its files. Does nothing in a fork of the process that started the server. */
    public function stop(): void
    {
        if ($this->guardian->belongsToThisProcess()) {
            $this->server->kill();
            $this->guardian->dismiss();
        }
    }

    /** @param array<string, string|int|float|bool> $settings */
    private static function create(array $settings, TemporaryRedisOptions $options): self
    {
        $binary = ServerBinary::find($options->binary);
        $directory = new PrivateDirectory('redis');
        $password = bin2hex(random_bytes(16));
        $guardian = new GuardianProcess(RedisLeftovers::class, $directory->path);
        try {
            $directory->make('data');
            $command = [$binary, Configuration::write($directory, $password, $settings, $options)];

            return FreePort::startOnFreePort(
                static function (int $port) use ($command, $directory, $password, $guardian, $options): self {
                    $tlsPort = $options->certificate === null ? null : FreePort::find();
                    $ports = ['--port', (string) $port, ...$tlsPort === null ? [] : ['--tls-port', (string) $tlsPort]];
                    $server = new TestServer('Redis', [...$command, ...$ports], RedisLeftovers::of($directory->path));
                    self::launch($server, $directory->path, $password, $options->timeout);

                    return new self(
                        $port,
                        $password,
                        $directory->path,
                        $tlsPort,
                        $guardian,
                        $server,
                        $options->timeout,
                    );
                },
            );
        } catch (\Throwable $failure) {
            $guardian->dismiss();

            throw $failure;
        }
    }

    private static function launch(
        TestServer $server,
        string $directory,
        #[\SensitiveParameter]
        string $password,
        float $timeout,
    ): void {
        RedisLeftovers::of($directory)->kill(); // a child of the killed server may still write a snapshot
        $server->start(static function () use ($directory, $password): bool {
            try {
                return (new TestRedisClient(
                    "{$directory}/socket",
                    $password,
                    self::READINESS_TIMEOUT,
                ))->call('PING') === 'PONG';
            } catch (TemporaryRedisException) { // the server does not listen yet, or is loading its data
                return false;
            }
        }, $timeout);
    }
}

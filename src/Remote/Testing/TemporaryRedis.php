<?php

declare(strict_types=1);

namespace Spindle\Remote\Testing;

use Spindle\Internal\Testing\Daemon;
use Spindle\Internal\Testing\FreePort;
use Spindle\Internal\Testing\GuardianProcess;
use Spindle\Internal\Testing\PrivateDirectory;
use Spindle\Internal\Testing\ServerException;
use Spindle\Internal\Testing\TestServerSettings;
use Spindle\LauncherException;
use Spindle\Remote\Testing\Internal\Binary;
use Spindle\Remote\Testing\Internal\Configuration;
use Spindle\Remote\Testing\Internal\RedisLeftovers;
use Spindle\Remote\Testing\Internal\TestRedisClient;

/**
 * A private Redis or Valkey server for tests, started from the installed program in a private directory. The server and
 * its files are removed by {@see stop()}, with the last reference to this object, or when the PHP process ends, even by
 * SIGKILL.
 *
 * The server listens on 127.0.0.1 and on a Unix socket, requires a password on both, and keeps an append-only file.
 *
 * A fork of the process may use the server, but not end or restart it. All methods block, even within an event loop.
 */
final class TemporaryRedis
{
    private const SIGTERM = 15;

    /** Signals that end the server, and how many seconds it has to save its data after each. */
    private const SIGNAL_TIMEOUTS = [self::SIGTERM => 5.0];

    /** Time limit of one readiness check in seconds. A check that fails is repeated. */
    private const READINESS_TIMEOUT = 1.0;

    /**
     * @param string   $password  password of the default user
     * @param string   $directory directory of all files of the server
     * @param int|null $tlsPort   null without a certificate
     */
    private function __construct(
        public readonly int $port,
        #[\SensitiveParameter]
        public readonly string $password,
        public readonly string $directory,
        private readonly ?int $tlsPort,
        private readonly GuardianProcess $guardian,
        private readonly Daemon $daemon,
        private readonly float $timeout,
    ) {}

    public function __destruct()
    {
        $this->stop();
    }

    private function __clone() {}

    /** @return array<string, mixed> without the password */
    public function __debugInfo(): array
    {
        return ['port' => $this->port, 'directory' => $this->directory];
    }

    /**
     * Starts a server and returns when it accepts commands. By default it has an append-only file (everysec), no
     * snapshots and no eviction.
     *
     * @param array<string, string|int|float|bool> $settings as in redis.conf, such as ['appendfsync' => 'always',
     *                                                       'save' => '900 1 300 10', 'maxmemory' => '10mb']
     *
     * @throws RedisException
     * @throws LauncherException when there is no command-line PHP
     * @throws \ValueError when a setting is reserved, such as the port, or can't be written in one line
     */
    public static function start(array $settings = [], ?TemporaryRedisOptions $options = null): self
    {
        TestServerSettings::check($settings, Configuration::ITS_OWN, 'Redis', 'redis.conf');

        return RedisException::during(
            static fn(): self => self::make($settings, $options ?? new TemporaryRedisOptions()),
        );
    }

    /** Returns redis://:password@127.0.0.1:port. */
    public function address(): string
    {
        return "redis://:{$this->password}@127.0.0.1:{$this->port}";
    }

    /** Returns unix://:password@/path. */
    public function socketAddress(): string
    {
        return "unix://:{$this->password}@{$this->directory}/socket";
    }

    /**
     * Returns rediss://:password@127.0.0.1:port, with the TLS port.
     *
     * @throws \LogicException without TemporaryRedisOptions(certificate: ..., key: ...)
     */
    public function tlsAddress(): string
    {
        return $this->tlsPort === null
            ? throw new \LogicException(
                'This temporary Redis has no certificate: '
                    . 'give it one by TemporaryRedisOptions(certificate: ..., key: ...)',
            )
            : "rediss://:{$this->password}@127.0.0.1:{$this->tlsPort}";
    }

    /** Returns the server's process id; null when it does not run. */
    public function pid(): ?int
    {
        return $this->daemon->pid();
    }

    /**
     * Sends one command over a separate connection.
     *
     * @return mixed a string, an integer, null, or a list of these
     *
     * @throws RedisException when the answer is an error, or does not arrive in time
     */
    public function command(#[\SensitiveParameter] string ...$words): mixed
    {
        $words = array_values($words);
        $command = array_shift($words) ?? throw new \ValueError('A command has a name at least');

        return (new TestRedisClient("{$this->directory}/socket", $this->password, $this->timeout))->ask(
            $command,
            ...$words,
        );
    }

    /**
     * Returns the server's log so far.
     *
     * @throws RedisException when the log can't be read, such as after {@see stop()}, which removes it
     */
    public function log(): string
    {
        return RedisException::during(
            fn(): string => $this->guardian->isDismissed()
                ? throw ServerException::noLog('the Redis was stopped')
                : $this->daemon->log(),
        );
    }

    /**
     * Kills the server with SIGKILL, and returns when it has ended. Its data stay for {@see restart()}.
     *
     * @throws \LogicException in a fork of the process that started it, or when it was stopped
     */
    public function kill(): void
    {
        $this->guardian->check('Redis');
        $this->daemon->kill();
    }

    /**
     * Starts the server again on the same data and addresses. A running server is shut down first. Returns when the
     * data are loaded and the server accepts commands.
     *
     * @throws RedisException  when the server does not start
     * @throws \LogicException in a fork of the process that started it, or when it was stopped
     */
    public function restart(): void
    {
        $this->guardian->check('Redis');
        $this->daemon->end(self::SIGNAL_TIMEOUTS);
        RedisException::during(fn() => self::launch($this->daemon, $this->directory, $this->password, $this->timeout));
    }

    /** Ends the server and removes its files. Does nothing in a fork of the process that started it. */
    public function stop(): void
    {
        if ($this->guardian->isOurs()) {
            $this->daemon->kill();
            $this->guardian->dismiss();
        }
    }

    /**
     * @param array<string, string|int|float|bool> $settings
     *
     * @throws RedisException
     * @throws ServerException
     */
    private static function make(array $settings, TemporaryRedisOptions $options): self
    {
        $binary = Binary::find($options->binary);
        $directory = new PrivateDirectory('redis');
        $password = bin2hex(random_bytes(16));
        $guardian = new GuardianProcess(RedisLeftovers::class, $directory->path);
        try {
            $directory->make('data');
            $command = [$binary, Configuration::write($directory, $password, $settings, $options)];

            return FreePort::take(
                static function (int $port) use ($command, $directory, $password, $guardian, $options): self {
                    $tlsPort = $options->certificate === null ? null : FreePort::find();
                    $ports = ['--port', (string) $port, ...$tlsPort === null ? [] : ['--tls-port', (string) $tlsPort]];
                    $daemon = new Daemon('Redis', [...$command, ...$ports], RedisLeftovers::of($directory->path));
                    self::launch($daemon, $directory->path, $password, $options->timeout);

                    return new self(
                        $port,
                        $password,
                        $directory->path,
                        $tlsPort,
                        $guardian,
                        $daemon,
                        $options->timeout,
                    );
                },
            );
        } catch (\Throwable $failure) {
            $guardian->dismiss();

            throw $failure;
        }
    }

    /** @throws ServerException */
    private static function launch(
        Daemon $daemon,
        string $directory,
        #[\SensitiveParameter]
        string $password,
        float $timeout,
    ): void {
        RedisLeftovers::of($directory)->kill(); // a killed server's child may still write data that is not needed
        $daemon->start(static function () use ($directory, $password): bool {
            try {
                return (new TestRedisClient(
                    "{$directory}/socket",
                    $password,
                    self::READINESS_TIMEOUT,
                ))->ask('PING') === 'PONG';
            } catch (RedisException) { // the server does not listen yet, or is loading its data
                return false;
            }
        }, $timeout);
    }
}

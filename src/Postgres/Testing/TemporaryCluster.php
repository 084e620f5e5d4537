<?php

declare(strict_types=1);

namespace Spindle\Postgres\Testing;

use Spindle\Internal\Testing\FreePort;
use Spindle\Internal\Testing\GuardianProcess;
use Spindle\Internal\Testing\PrivateDirectory;
use Spindle\Internal\Testing\ServerException;
use Spindle\Internal\Testing\Settings;
use Spindle\LauncherException;
use Spindle\Postgres\Testing\Internal\Binaries;
use Spindle\Postgres\Testing\Internal\DataDirectory;
use Spindle\Postgres\Testing\Internal\Leftovers;
use Spindle\Postgres\Testing\Internal\Server;
use Spindle\Postgres\Testing\Internal\ServerUser;

/**
 * A PostgreSQL server of one's own for tests: made within a second from the PostgreSQL that is installed, in a private
 * directory, and gone without a trace when it is stopped, when nobody holds it any more, or when the PHP process has
 * ended, also by SIGKILL.
 *
 * It listens on a Unix socket, where everybody who may open its directory is trusted, and on 127.0.0.1, where the password
 * is asked for. As root the server runs as the user postgres or nobody, for PostgreSQL refuses to run as root.
 *
 * A fork of the process may use it, but not end or restart it. All methods block, also within an event loop.
 */
final class TemporaryCluster
{
    /** What it gives itself. */
    private const ITS_OWN = ['cluster_name', 'data_directory', 'listen_addresses', 'port', 'unix_socket_directories'];

    public readonly string $database;

    /**
     * @param string $host     the directory of its Unix socket, and of all its files
     * @param int    $port     of both, the Unix socket and 127.0.0.1
     * @param string $user     the superuser
     * @param string $password of the superuser, on 127.0.0.1
     */
    private function __construct(
        public readonly string $host,
        public readonly int $port,
        public readonly string $user,
        #[\SensitiveParameter]
        public readonly string $password,
        private readonly GuardianProcess $guardian,
        private readonly Server $server,
        private readonly float $timeout,
    ) {
        $this->database = 'postgres';
    }

    public function __destruct()
    {
        $this->stop();
    }

    private function __clone() {}

    /**
     * Returns when it takes connections.
     *
     * @param array<string, string|int|float|bool> $settings of postgresql.conf, such as ['max_connections' => 200]
     *
     * @throws ClusterException
     * @throws LauncherException when there is no command-line PHP
     * @throws \ValueError when a setting is one that the cluster gives itself, such as the port, or can't be written in one line
     */
    public static function start(array $settings = [], ?TemporaryClusterOptions $options = null): self
    {
        Settings::check($settings, self::ITS_OWN, 'cluster', 'postgresql.conf');

        return ClusterException::during(static fn(): self => self::make($settings, $options ?? new TemporaryClusterOptions()));
    }

    /**
     * What to connect to it through the Unix socket with, as PostgreSQL's clients take it: "host=... port=... ...".
     *
     * @param string ...$parameters by name, beyond or instead of its own, such as dbname: 'test'
     */
    public function dsn(string ...$parameters): string
    {
        return self::join(['host' => $this->host, 'port' => (string) $this->port, 'user' => $this->user, 'dbname' => $this->database, ...$parameters]);
    }

    /**
     * The same for TCP.
     *
     * @param string ...$parameters by name, beyond or instead of its own, such as sslmode: 'require'
     */
    public function tcpDsn(string ...$parameters): string
    {
        return $this->dsn(...['host' => '127.0.0.1', 'password' => $this->password, ...$parameters]);
    }

    /** The id of the server's first process; null when it does not run. */
    public function postmasterPid(): ?int
    {
        return $this->server->pid();
    }

    /**
     * All that the server has logged so far.
     *
     * @throws ClusterException when it can't be read, such as after {@see stop()}, with which it went
     */
    public function log(): string
    {
        return ClusterException::during(fn(): string => $this->guardian->isDismissed() ? throw ServerException::noLog('the cluster was stopped') : $this->server->log());
    }

    /**
     * Kills the server's first process with SIGKILL, and leaves its children to notice, which they do soon unless they
     * are busy. Returns when it is gone; its data stay, for {@see restart()}.
     *
     * @throws \LogicException in a fork of the process that started it, or when it was stopped
     */
    public function kill(): void
    {
        $this->guardian->check('cluster');
        $this->server->kill();
    }

    /**
     * Starts the server again on the same data and addresses; one that runs is ended in an orderly way before. Returns
     * when it takes connections.
     *
     * @throws ClusterException when it does not start
     * @throws \LogicException  in a fork of the process that started it, or when it was stopped
     */
    public function restart(): void
    {
        $this->guardian->check('cluster');
        $this->server->end();
        ClusterException::during(fn() => $this->server->start($this->timeout));
    }

    /** Ends the server and removes all that there is of it; in a fork of the process that started it, does nothing. */
    public function stop(): void
    {
        if ($this->guardian->isOurs()) {
            $this->server->end();
            $this->guardian->dismiss();
        }
    }

    /**
     * @param array<string, string|int|float|bool> $settings
     *
     * @throws ClusterException
     * @throws ServerException
     */
    private static function make(array $settings, TemporaryClusterOptions $options): self
    {
        $binaries = Binaries::find($options->version, $options->binaries);
        $user = ServerUser::find();
        $directory = new PrivateDirectory('postgres');
        $guardian = new GuardianProcess(Leftovers::class, $directory->path);
        try {
            $password = (new DataDirectory($directory, $user))->make($binaries, $settings, $options);
            [$server, $port] = FreePort::take(static fn(int $port): array => [self::startServer($directory->path, $port, $user, $binaries, $options->timeout), $port]);
        } catch (\Throwable $failure) {
            $guardian->dismiss();

            throw $failure;
        }

        return new self($directory->path, $port, $options->user, $password, $guardian, $server, $options->timeout);
    }

    /** @throws ServerException */
    private static function startServer(string $directory, int $port, ServerUser $user, string $binaries, float $timeout): Server
    {
        $server = new Server($directory, $user->command([
            "{$binaries}/postgres", '-D', "{$directory}/data", '-k', $directory, '-h', '127.0.0.1', '-p', (string) $port,
            '-c', 'cluster_name=' . basename($directory),
        ]));
        $server->start($timeout);

        return $server;
    }

    /** @param array<array-key, string> $parameters */
    private static function join(array $parameters): string
    {
        $pairs = [];
        foreach ($parameters as $name => $value) {
            $pairs[] = "{$name}=" . (preg_match('~^[\w./-]+$~D', $value) === 1 ? $value : "'" . addcslashes($value, "'\\") . "'");
        }

        return implode(' ', $pairs);
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Postgres\Testing;

use Spindle\LauncherException;
use Spindle\Postgres\Testing\Internal\Binaries;
use Spindle\Postgres\Testing\Internal\DataDirectory;
use Spindle\Postgres\Testing\Internal\Guardian;
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
    /** Where the system takes no ports from for outgoing connections, on Linux: one that is free stays so. */
    private const PORTS = [10_240, 32_000];

    private const ATTEMPTS = 20;

    /** What it gives itself. */
    private const ITS_OWN = ['cluster_name', 'data_directory', 'listen_addresses', 'port', 'unix_socket_directories'];

    /** A Unix socket's path is limited to 107 bytes, on some systems to 103. */
    private const LONGEST_PATH = 85;

    public readonly string $database;

    private readonly int $owner;

    private bool $stopped = false;

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
        private readonly Guardian $guardian,
        private readonly Server $server,
        private readonly float $timeout,
    ) {
        $this->database = 'postgres';
        $this->owner = (int) getmypid();
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
        foreach (array_intersect_key($settings, array_flip(self::ITS_OWN)) as $name => $_) {
            throw new \ValueError("A temporary cluster chooses its own {$name}");
        }
        foreach ($settings as $name => $value) {
            if (preg_match('~[\r\n\0]~', "{$name}{$value}") === 1) {
                throw new \ValueError('The setting ' . strtok($name, "\r\n\0") . ' has a line break or a NUL byte, which postgresql.conf can\'t hold');
            }
        }
        $options ??= new TemporaryClusterOptions();
        $binaries = Binaries::find($options->version, $options->binaries);
        $user = ServerUser::find();
        $directory = self::directory();
        $password = bin2hex(random_bytes(16));
        $guardian = new Guardian($directory);
        try {
            (new DataDirectory($directory, $user))->make($binaries, $password, $settings, $options);
            [$server, $port] = self::startServer($directory, $user, $binaries, $options->timeout);
        } catch (\Throwable $failure) {
            $guardian->dismiss();

            throw $failure;
        }

        return new self($directory, $port, $options->user, $password, $guardian, $server, $options->timeout);
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
        error_clear_last();
        $log = @file_get_contents($this->server->logFile());

        return $log === false ? throw ClusterException::cannotDo('The log of the server can\'t be read', $this->stopped ? 'the cluster was stopped' : error_get_last()['message'] ?? '') : $log;
    }

    /**
     * Kills the server's first process with SIGKILL, and leaves its children to notice, which they do soon unless they
     * are busy. Returns when it is gone; its data stay, for {@see restart()}.
     *
     * @throws \LogicException in a fork of the process that started it, or when it was stopped
     */
    public function kill(): void
    {
        $this->checkOurs();
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
        $this->checkOurs();
        $this->server->end();
        $this->server->start($this->timeout);
    }

    /** Ends the server and removes all that there is of it; in a fork of the process that started it, does nothing. */
    public function stop(): void
    {
        if (!$this->stopped && $this->owner === getmypid()) {
            $this->stopped = true;
            $this->server->end();
            $this->guardian->dismiss();
        }
    }

    /**
     * @return array{Server, int} and its port
     *
     * @throws ClusterException
     */
    private static function startServer(string $directory, ServerUser $user, string $binaries, float $timeout): array
    {
        for ($attempt = 1;; ++$attempt) {
            $port = self::freePort();
            $server = new Server($directory, $user->command([
                "{$binaries}/postgres", '-D', "{$directory}/data", '-k', $directory, '-h', '127.0.0.1', '-p', (string) $port,
                '-c', 'cluster_name=' . basename($directory),
            ]));
            try {
                $server->start($timeout);

                return [$server, $port];
            } catch (ClusterException $failure) {
                if ($attempt === self::ATTEMPTS || !str_contains($failure->output, 'Address already in use')) {
                    throw $failure;
                }
            }
        }
    }

    private static function directory(): string
    {
        $temporary = realpath(sys_get_temp_dir());

        return ($temporary === false || \strlen($temporary) > self::LONGEST_PATH ? '/tmp' : $temporary) . '/spindle-postgres-' . bin2hex(random_bytes(6));
    }

    /** Another process may take it meanwhile. */
    private static function freePort(): int
    {
        for ($i = 0; $i < self::ATTEMPTS; ++$i) {
            $port = random_int(...self::PORTS);
            $socket = @stream_socket_server("tcp://127.0.0.1:{$port}");
            if ($socket !== false) {
                fclose($socket);

                return $port;
            }
        }

        throw ClusterException::cannotDo('No port on 127.0.0.1 can be listened on', error_get_last()['message'] ?? '');
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

    private function checkOurs(): void
    {
        if ($this->stopped || $this->owner !== getmypid()) {
            throw new \LogicException($this->stopped ? 'The cluster was stopped' : 'The cluster belongs to the process that this one was forked from');
        }
    }
}

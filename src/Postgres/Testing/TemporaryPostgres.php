<?php

declare(strict_types=1);

namespace Spindle\Postgres\Testing;

use Spindle\Internal\NotCopyable;
use Spindle\Internal\Testing\FreePort;
use Spindle\Internal\Testing\GuardianProcess;
use Spindle\Internal\Testing\PrivateDirectory;
use Spindle\Internal\Testing\ServerException;
use Spindle\Internal\Testing\TestServer;
use Spindle\Internal\Testing\TestServerSettings;
use Spindle\Internal\Testing\Wait;
use Spindle\LauncherException;
use Spindle\Postgres\Testing\Internal\Binaries;
use Spindle\Postgres\Testing\Internal\DataDirectory;
use Spindle\Postgres\Testing\Internal\PostgresLeftovers;
use Spindle\Postgres\Testing\Internal\ServerUser;

/**
 * A private PostgreSQL server for tests. It is created in about a second from the installed PostgreSQL.
 *
 * All its files are in a private directory. The server ends, and its files are removed, in three cases: {@see stop()}
 * is called, nothing references this object any more, or the PHP process has ended (even by SIGKILL).
 *
 * The server listens on a Unix socket, where it trusts every user with access to the socket's directory. It also
 * listens on 127.0.0.1, where it requires the password. If PHP runs as root, the server runs as user "postgres" or
 * "nobody".
 *
 * A fork of the process can connect to the server, but can not stop, kill or restart it. All methods block the process,
 * even within an event loop.
 */
final class TemporaryPostgres
{
    use NotCopyable;

    /** Settings that callers of start() must not pass, because this class sets them. */
    private const RESERVED_SETTINGS = [
        'cluster_name',
        'data_directory',
        'listen_addresses',
        'port',
        'unix_socket_directories',
    ];

    private const SIGINT = 2;
    private const SIGQUIT = 3;

    /** Maximum seconds to wait after each signal: SIGINT for a fast shutdown, SIGQUIT for an immediate one. */
    private const SIGNAL_TIMEOUTS = [self::SIGINT => 5.0, self::SIGQUIT => 2.0];

    /** Maximum seconds to wait for the children of a killed server. A busy child ends after its statement. */
    private const ORPHAN_TIMEOUT = 1.0;

    public readonly string $database;

    /**
     * @param string $host directory of the Unix socket and of all files
     * @param int $port port of the Unix socket and of 127.0.0.1
     * @param string $user name of the superuser
     * @param string $password password of the superuser on 127.0.0.1
     */
    private function __construct(
        public readonly string $host,
        public readonly int $port,
        public readonly string $user,
        #[\SensitiveParameter]
        public readonly string $password,
        private readonly GuardianProcess $guardian,
        private readonly TestServer $server,
        private readonly float $timeout,
    ) {
        $this->database = 'postgres';
    }

    public function __destruct()
    {
        $this->stop();
    }

    /**
     * Creates and starts a server. Returns when the server accepts connections.
     *
     * @param array<string, string|int|float|bool> $settings settings of postgresql.conf: ['max_connections' => 200]
     *
     * @throws TemporaryPostgresException when PostgreSQL is not installed, or the server can't be created or started
     * @throws LauncherException when no command-line PHP is installed
     * @throws \ValueError when this class sets one of the settings itself, such as port, or a value has a line break
     */
    public static function start(array $settings = [], ?TemporaryPostgresOptions $options = null): self
    {
        TestServerSettings::check($settings, self::RESERVED_SETTINGS, 'server', 'postgresql.conf');

        return TemporaryPostgresException::convertingFrom(
            static fn(): self => self::create($settings, $options ?? new TemporaryPostgresOptions()),
        );
    }

    /**
     * Returns a DSN for the Unix socket: "host=… port=… user=… dbname=…".
     *
     * @param string ...$parameters parameters to add or replace by name, such as dbname: 'test'
     */
    public function dsn(string ...$parameters): string
    {
        return self::join(
            [
                'host' => $this->host,
                'port' => (string) $this->port,
                'user' => $this->user,
                'dbname' => $this->database,
                ...$parameters,
            ],
        );
    }

    /**
     * Returns a DSN for TCP on 127.0.0.1, with the password.
     *
     * @param string ...$parameters parameters to add or replace by name, such as sslmode: 'require'
     */
    public function tcpDsn(string ...$parameters): string
    {
        return $this->dsn(...['host' => '127.0.0.1', 'password' => $this->password, ...$parameters]);
    }

    /** Returns the id of the server's main process; null when that process is not running. */
    public function postmasterPid(): ?int
    {
        return $this->server->pid();
    }

    /**
     * Returns everything that the server has logged so far.
     *
     * @throws TemporaryPostgresException when the log can't be read, for example because {@see stop()} has removed it
     */
    public function log(): string
    {
        return TemporaryPostgresException::convertingFrom(
            fn(): string => $this->guardian->isDismissed()
                ? throw ServerException::noLog('the server was stopped')
                : $this->server->log(),
        );
    }

    /**
     * Kills the server's main process with SIGKILL, and returns when that process has ended.
     *
     * The other processes of the server end soon afterwards. A process that runs a statement ends after the statement.
     * The data remain for {@see restart()}.
     *
     * @throws \LogicException in a fork of the process that started the server, or after stop()
     */
    public function kill(): void
    {
        $this->guardian->check('server');
        $this->server->kill();
    }

    /**
     * Restarts the server with the same data and addresses. A running server is shut down first. Returns when the
     * server accepts connections.
     *
     * @throws TemporaryPostgresException when the server does not start
     * @throws \LogicException in a fork of the process that started the server, or after stop()
     */
    public function restart(): void
    {
        $this->guardian->check('server');
        $this->server->stop(self::SIGNAL_TIMEOUTS);
        TemporaryPostgresException::convertingFrom(fn() => self::launch($this->server, $this->host, $this->timeout));
    }

    /** Stops the server, and removes all its files. Does nothing in a fork of the process that started the server. */
    public function stop(): void
    {
        if ($this->guardian->belongsToThisProcess()) {
            $this->server->stop(self::SIGNAL_TIMEOUTS);
            $this->guardian->dismiss();
        }
    }

    /**
     * @param array<string, string|int|float|bool> $settings
     *
     * @throws TemporaryPostgresException|ServerException
     */
    private static function create(array $settings, TemporaryPostgresOptions $options): self
    {
        $binaries = Binaries::find($options->version, $options->binaries);
        $user = ServerUser::find();
        $directory = new PrivateDirectory('postgres');
        $guardian = new GuardianProcess(PostgresLeftovers::class, $directory->path);
        try {
            $password = (new DataDirectory($directory, $user))->create($binaries, $settings, $options);
            [$server, $port] = FreePort::startOnFreePort(
                static fn(int $port): array
                    => [self::startServer($directory->path, $port, $user, $binaries, $options->timeout), $port],
            );
        } catch (\Throwable $failure) {
            $guardian->dismiss();

            throw $failure;
        }

        return new self($directory->path, $port, $options->user, $password, $guardian, $server, $options->timeout);
    }

    /** @throws ServerException */
    private static function startServer(
        string $directory,
        int $port,
        ServerUser $user,
        string $binaries,
        float $timeout,
    ): TestServer {
        $command = $user->command([
            "{$binaries}/postgres",
            '-D', "{$directory}/data", '-k', $directory,
            '-h', '127.0.0.1', '-p', (string) $port,
            '-c', 'cluster_name=' . basename($directory),
        ]);
        $pid = static fn(): int => (int) (PostgresLeftovers::pidFileLines($directory)[0] ?? 0);
        $server = new TestServer('PostgreSQL', $command, PostgresLeftovers::of($directory), $pid);
        self::launch($server, $directory, $timeout);

        return $server;
    }

    /** @throws ServerException when the server does not start. Then the server's main process is not running */
    private static function launch(TestServer $server, string $directory, float $timeout): void
    {
        $state = PostgresLeftovers::of($directory);
        if (!Wait::until(static fn(): bool => $state->processes() === [], self::ORPHAN_TIMEOUT)) {
            $state->kill();
        }
        $earlier = PostgresLeftovers::pidFileLines($directory); // a killed server leaves this file
        $server->start(static function () use ($directory, $earlier): bool {
            $lines = PostgresLeftovers::pidFileLines($directory);

            return $lines !== $earlier && \in_array(trim($lines[7] ?? ''), ['ready', 'standby'], true);
        }, $timeout);
    }

    /** @param array<array-key, string> $parameters */
    private static function join(array $parameters): string
    {
        $pairs = [];
        foreach ($parameters as $name => $value) {
            $pairs[] = "{$name}="
                . (preg_match('~^[\w./-]+$~D', $value) === 1 ? $value : "'" . addcslashes($value, "'\\") . "'");
        }

        return implode(' ', $pairs);
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Bench\Postgres;

use Spindle\Bench\Support\UsageException;
use Spindle\Postgres\PostgresConnection;
use Spindle\Postgres\PostgresException;
use Spindle\Postgres\PostgresOptions;
use Spindle\Postgres\Testing\TemporaryPostgres;
use Spindle\Postgres\Testing\TemporaryPostgresException;
use Spindle\Postgres\Testing\TemporaryPostgresOptions;

/** The measured server: a temporary cluster, or a given server. */
final readonly class Server
{
    /** Settings of the cluster, against background work during a measurement. */
    private const SETTINGS = ['autovacuum' => false, 'checkpoint_timeout' => '1h', 'max_wal_size' => '8GB'];

    /** Connections in addition to those of a contestant. */
    private const SPARE_CONNECTIONS = 20;

    private const REPORTED_SETTINGS = [
        'fsync', 'full_page_writes', 'synchronous_commit', 'autovacuum', 'shared_buffers', 'max_connections',
        'max_wal_size', 'checkpoint_timeout', 'wal_level', 'jit', 'ssl',
    ];

    public Target $target;

    private PostgresConnection $connection;

    private Tables $tables;

    /**
     * @param array<string, string>      $parameters libpq parameters
     * @param array<string, string>|null $tls        the same for TLS
     */
    private function __construct(
        #[\SensitiveParameter]
        array $parameters,
        #[\SensitiveParameter]
        ?array $tls,
        private ?TemporaryPostgres $cluster,
    ) {
        $target = new Target($parameters, $tls, '', null);
        $this->connection = PostgresConnection::connect($target->dsn());
        $this->tables = new Tables($this->connection);
        $this->target = new Target($parameters, $tls, $this->tables->schema, $this->postmaster($parameters['host']));
    }

    /**
     * @param int  $connections largest number of a contestant's connections
     * @param bool $withTls     whether the server gets TLS
     * @param array<string, string|int|float|bool> $settings changes to the default settings of postgresql.conf
     *
     * @throws UsageException when no server can be started
     */
    public static function start(int $connections, bool $withTls, array $settings = []): self
    {
        $certificate = $withTls && \extension_loaded('openssl') ? Certificate::make() : null;
        try {
            $cluster = TemporaryPostgres::start(
                $settings + self::SETTINGS + ['max_connections' => max(100, $connections + self::SPARE_CONNECTIONS)],
                new TemporaryPostgresOptions(certificate: $certificate?->file, key: $certificate?->keyFile),
            );
        } catch (TemporaryPostgresException $failure) {
            throw new UsageException($failure->getMessage(), previous: $failure);
        }
        $parameters = [
            'host' => $cluster->host,
            'port' => (string) $cluster->port,
            'user' => $cluster->user,
            'dbname' => $cluster->database,
        ];
        $tls = $certificate === null ? null : [
            'host' => '127.0.0.1',
            'password' => $cluster->password,
            'sslmode' => 'verify-full',
            'sslrootcert' => "{$cluster->host}/ssl_cert_file.pem",
        ];

        return new self($parameters, $tls === null ? null : $tls + $parameters, $cluster);
    }

    /** @throws UsageException when the connection fails */
    public static function at(#[\SensitiveParameter] string $dsn): self
    {
        try {
            $options = PostgresOptions::fromDsn($dsn);
            $host = $options->hosts[0];
            $password = $options->password();

            return new self([
                'host' => $host->host,
                'port' => (string) $host->port,
                'user' => $options->user,
                'dbname' => $options->database,
                ...($password === null ? [] : ['password' => $password]),
                ...($options->tls === null ? [] : ['sslmode' => $options->tls->value]),
                ...($options->tlsCaFile === null ? [] : ['sslrootcert' => $options->tlsCaFile]),
            ], null, null);
        } catch (\ValueError|PostgresException $failure) {
            throw new UsageException("option --dsn: {$failure->getMessage()}", previous: $failure);
        }
    }

    /** @return array<string, string> version and settings */
    public function describe(): array
    {
        $settings = array_map(
            fn(string $name): string
                => "{$name} " . $this->text("SELECT coalesce(current_setting('{$name}', true), '?')"),
            self::REPORTED_SETTINGS,
        );

        return [
            'Server' => 'PostgreSQL '
                . $this->text('SHOW server_version')
                . ($this->cluster === null ? ', given with --dsn' : ', a temporary cluster'),
            'Way' => str_starts_with($this->target->parameters['host'], '/')
                ? 'Unix socket'
                : "TCP to {$this->target->parameters['host']}",
            'Settings' => implode(', ', $settings),
        ];
    }

    /** Calls {@see Tables::prepare()}. */
    public function prepare(Measurement $what, int $count): void
    {
        $this->tables->prepare($what, $count);
    }

    public function stop(): void
    {
        $this->tables->drop();
        $this->connection->close();
        $this->cluster?->stop();
    }

    /** Returns the parent of this connection's server process, if it runs on this machine. */
    private function postmaster(string $host): ?int
    {
        if ($this->cluster !== null) {
            return $this->cluster->postmasterPid();
        }
        $status = str_starts_with($host, '/')
            ? (string) @file_get_contents("/proc/{$this->connection->backendPid()}/status")
            : '';

        return preg_match('/^Name:\s*postgres$(?s:.*)^PPid:\s*(\d+)$/m', $status, $match) === 1
            ? (int) $match[1]
            : null;
    }

    private function text(string $sql): string
    {
        $value = $this->connection->query($sql)->value();

        return \is_scalar($value) ? (string) $value : '';
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Doctrine;

use Doctrine\DBAL\Driver\AbstractPostgreSQLDriver;
use Spindle\Postgres\PostgresHost;
use Spindle\Postgres\PostgresOptions;
use Spindle\Postgres\PostgresPool;
use Spindle\Postgres\PostgresPoolOptions;
use Spindle\Postgres\TlsMode;

/**
 * Connects Doctrine DBAL to PostgreSQL through a {@see PostgresPool}, so that a query suspends only its fiber.
 *
 * The driver option "pool" is the pool. Its values of json must have {@see \Spindle\Postgres\JsonMode::Arrays}. Without
 * this option, all Doctrine connections of a process with the same host, port, user, password, dbname, sslmode,
 * sslrootcert, sslcert, sslkey and application_name share a pool. The driver option "maxConnections" is the size of
 * that pool; 10 by default.
 */
final class Driver extends AbstractPostgreSQLDriver
{
    private const DEFAULT_DATABASE = 'postgres';
    private const DEFAULT_MAX_CONNECTIONS = 10;

    /** @var array<string, PostgresPool> by process and parameters */
    private static array $pools = [];

    /** @throws Exception */
    public function connect(#[\SensitiveParameter] array $params): Connection
    {
        /** @var array<string, mixed> $options */
        $options = $params['driverOptions'] ?? [];
        $pool = $options['pool'] ?? null;

        return new Connection($pool instanceof PostgresPool ? $pool : self::pool($params, $options));
    }

    /**
     * @param array<string, mixed> $params
     * @param array<string, mixed> $options
     */
    private static function pool(#[\SensitiveParameter] array $params, array $options): PostgresPool
    {
        $texts = array_map(
            static fn(mixed $value): ?string => \is_scalar($value) && $value !== '' ? (string) $value : null,
            $params,
        );
        $maxConnections = $options['maxConnections'] ?? self::DEFAULT_MAX_CONNECTIONS;
        $key = hash('sha256', serialize([getmypid(), $texts, $maxConnections]));

        return self::$pools[$key] ??= new PostgresPool(
            self::options($texts),
            \is_int($maxConnections) ? $maxConnections : self::DEFAULT_MAX_CONNECTIONS,
            new PostgresPoolOptions(leakAfter: null),
        );
    }

    /** @param array<string, string|null> $params */
    private static function options(#[\SensitiveParameter] array $params): PostgresOptions
    {
        $port = (int) ($params['port'] ?? PostgresHost::DEFAULT_PORT);

        return new PostgresOptions(
            isset($params['host']) ? [new PostgresHost(trim($params['host'], '[]'), $port)] : [],
            $params['user'] ?? null,
            $params['password'] ?? null,
            $params['dbname'] ?? self::DEFAULT_DATABASE,
            tls: isset($params['sslmode']) ? TlsMode::from($params['sslmode']) : null,
            tlsRootCertificate: $params['sslrootcert'] ?? null,
            tlsCertificate: $params['sslcert'] ?? null,
            tlsKey: $params['sslkey'] ?? null,
            applicationName: $params['application_name'] ?? '',
        );
    }
}

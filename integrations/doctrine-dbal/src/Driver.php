<?php

declare(strict_types=1);

namespace Spindle\Doctrine;

use Doctrine\DBAL\Driver\AbstractPostgreSQLDriver;
use Spindle\Postgres\PostgresOptions;
use Spindle\Postgres\PostgresPool;
use Spindle\Postgres\PostgresPoolOptions;

/**
 * Connects Doctrine DBAL to PostgreSQL through a {@see PostgresPool}, so that a query suspends only its fiber.
 *
 * The driver option "pool" is the pool to use, or the name that {@see registerPool()} gave it. The pool must have
 * {@see \Spindle\Postgres\JsonMode::Arrays}. Without the option "pool", all Doctrine connections of a process with the
 * same maxConnections, host, hostaddr, port, user, password, dbname, sslmode, sslrootcert, sslcert, sslkey, gssencmode
 * and application_name share a pool. The driver option "maxConnections" is the size of this pool; 10 by default. These
 * parameters have the same values and defaults as in {@see PostgresOptions::fromDsn()}, except dbname: "postgres" by
 * default.
 */
final class Driver extends AbstractPostgreSQLDriver
{
    private const DEFAULT_DATABASE = 'postgres';
    private const DEFAULT_MAX_CONNECTIONS = 10;

    private const OPTIONS = ['pool' => true, 'maxConnections' => true];

    /**
     * Parameters of Doctrine that libpq also has. Parameters that {@see PostgresOptions::fromDsn()} refuses, such as
     * sslcrl, are also listed, so that they cause an error. All other parameters, such as charset, are ignored.
     */
    private const POOL_PARAMETERS = [
        'host' => true, 'hostaddr' => true, 'port' => true, 'user' => true, 'password' => true, 'dbname' => true,
        'sslmode' => true, 'sslrootcert' => true, 'sslcert' => true, 'sslkey' => true, 'sslcrl' => true,
        'gssencmode' => true, 'application_name' => true,
    ];

    /** @var array<string, PostgresPool> by a hash of the process id, the parameters and the size */
    private static array $pools = [];

    /** @var array<string, PostgresPool> by name */
    private static array $registered = [];

    /**
     * Gives a pool a name for the driver option "pool". The pool replaces an earlier pool with this name. Doctrine's
     * result cache needs a name, because its keys contain the serialized connection parameters, and a pool can't be
     * serialized. Use the same name in all processes that share a result cache, and different names for different
     * databases.
     */
    public static function registerPool(string $name, PostgresPool $pool): void
    {
        self::$registered[$name] = $pool;
    }

    /**
     * @throws Exception when no connection is available, or a parameter has a value that is not allowed
     * @throws \InvalidArgumentException when a driver option is unknown or has a value of the wrong type, or no pool
     *     was registered under the given name
     */
    public function connect(#[\SensitiveParameter] array $params): Connection
    {
        /** @var array<string, mixed> $options */
        $options = $params['driverOptions'] ?? [];
        self::refuseUnknown($params, $options);
        $pool = $options['pool'] ?? self::pool($params, self::maxConnections($options));

        return new Connection(match (true) {
            $pool instanceof PostgresPool => $pool,
            \is_string($pool) => self::registered($pool),
            default => throw new \InvalidArgumentException(
                'The driver option "pool" must be a ' . PostgresPool::class . ' or the name of one, not '
                    . get_debug_type($pool),
            ),
        });
    }

    public function getExceptionConverter(): ExceptionConverter
    {
        return new ExceptionConverter();
    }

    /**
     * Refuses unknown driver options, and driver options that are given as parameters. Unknown parameters are accepted,
     * because they may belong to Doctrine, a bundle or a wrapper class.
     *
     * @param array<string, mixed> $params
     * @param array<array-key, mixed> $options
     */
    private static function refuseUnknown(
        #[\SensitiveParameter]
        array $params,
        #[\SensitiveParameter]
        array $options,
    ): void {
        $name = array_key_first(array_diff_key($options, self::OPTIONS));
        if ($name !== null) {
            // The message omits a name that is no plain word, because the name may be a URL with a password by mistake.
            $isPlain = preg_match('/^\w{1,32}$/D', (string) $name) === 1;
            throw new \InvalidArgumentException(
                ($isPlain ? "The driver option \"{$name}\"" : 'A driver option') . ' is unknown. "pool" is a '
                    . 'PostgresPool or its name, and "maxConnections" is the size of the pool that the driver creates. '
                    . 'Create a PostgresPool to set other options',
            );
        }
        $name = array_key_first(array_intersect_key(self::OPTIONS, $params));
        if ($name !== null) {
            throw new \InvalidArgumentException("The parameter \"{$name}\" must be one of the \"driverOptions\"");
        }
    }

    private static function registered(#[\SensitiveParameter] string $name): PostgresPool
    {
        // The message omits the name, because the option may be a URL with a password by mistake.
        return self::$registered[$name] ?? throw new \InvalidArgumentException(
            'No PostgresPool is registered under the name in the driver option "pool". '
                . 'Call ' . self::class . '::registerPool() before the first query',
        );
    }

    /** @param array<string, mixed> $options */
    private static function maxConnections(#[\SensitiveParameter] array $options): int
    {
        $given = $options['maxConnections'] ?? self::DEFAULT_MAX_CONNECTIONS;
        // A number from a URL or an environment variable is a string.
        $number = \is_string($given) ? filter_var($given, \FILTER_VALIDATE_INT) : $given;

        return \is_int($number) ? $number : throw new \InvalidArgumentException(
            'The driver option "maxConnections" must be an integer, not '
                . (\is_string($given) ? 'a string that is no integer' : get_debug_type($given)),
        );
    }

    /** @param array<string, mixed> $params */
    private static function pool(#[\SensitiveParameter] array $params, int $maxConnections): PostgresPool
    {
        $texts = array_map(strval(...), array_filter(
            array_intersect_key($params, self::POOL_PARAMETERS),
            static fn(mixed $value): bool => \is_scalar($value) && $value !== '',
        ));
        $texts += ['dbname' => self::DEFAULT_DATABASE];
        ksort($texts);
        $key = hash('sha256', serialize([getmypid(), $texts, $maxConnections]));

        return self::$pools[$key] ??= new PostgresPool(
            self::options($texts),
            $maxConnections,
            new PostgresPoolOptions(leakDetectionThreshold: null),
        );
    }

    /**
     * @param array<string, string> $params
     *
     * @throws Exception
     */
    private static function options(#[\SensitiveParameter] array $params): PostgresOptions
    {
        $dsn = '';
        foreach ($params as $name => $value) {
            // Doctrine's drivers accept an IPv6 address in brackets.
            $text = $name === 'host' ? strtr($value, ['[' => '', ']' => '']) : $value;
            $dsn .= "{$name}='" . addcslashes($text, "\\'") . "' ";
        }
        try {
            return PostgresOptions::fromDsn($dsn);
        } catch (\ValueError $failure) {
            throw Exception::invalidParameter($failure);
        }
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Doctrine;

use Doctrine\DBAL\Driver\Connection as DriverConnection;
use Doctrine\DBAL\Driver\Exception\NoIdentityValue;
use Spindle\Postgres\MultipleStatementsException;
use Spindle\Postgres\PooledConnection;
use Spindle\Postgres\PostgresException;
use Spindle\Postgres\PostgresPool;

/**
 * A connection that is borrowed from a pool until this object is destroyed, which Doctrine's close() causes.
 *
 * A Doctrine connection counts its open transactions, so each fiber needs its own one. While a transaction is open,
 * statements of another fiber throw a \LogicException.
 */
final class Connection implements DriverConnection
{
    /** SQLSTATE of lastval() when the session has used no sequence: object_not_in_prerequisite_state. */
    private const NO_SEQUENCE_USED = '55000';

    private const CHANGES_SCHEMA = '~^\s*+(?:ALTER|CREATE|DROP)\b~i';

    private bool $inTransaction = false;

    /**
     * The fiber that has begun the transaction; null outside of fibers.
     *
     * @var \Fiber<mixed, mixed, mixed, mixed>|null
     */
    private ?\Fiber $owner = null;

    /** @var \WeakMap<PostgresPool, string>|null versions of the pools' servers */
    private static ?\WeakMap $versions = null;

    /**
     * Connections that are not destroyed, to be released at the end of the script. PHP destroys objects in any order
     * then, and the pool would report that a connection was not released.
     *
     * @var \WeakMap<self, true>|null
     */
    private static ?\WeakMap $open = null;

    private readonly PooledConnection $connection;

    private readonly string $version;

    /** Pid of the process that may release the connection. A fork has a copy. */
    private readonly int $pid;

    /**
     * @throws Exception
     * @throws \LogicException when the pool has another JsonMode than Arrays
     */
    public function __construct(PostgresPool $pool)
    {
        self::$versions ??= new \WeakMap();
        $this->pid = (int) getmypid();
        try {
            $this->connection = $pool->acquire();
            $this->version = self::$versions[$pool] ??= $this->queryVersion();
        } catch (PostgresException $failure) {
            throw Exception::of($failure);
        }
        if (self::$open === null) {
            self::$open = new \WeakMap();
            register_shutdown_function(self::releaseAll(...));
        }
        self::$open[$this] = true;
    }

    public function __destruct()
    {
        $this->release();
    }

    public function prepare(string $sql): Statement
    {
        return new Statement($this, NumberedParameters::of($sql));
    }

    public function query(string $sql): Result
    {
        return $this->run($sql, []);
    }

    /**
     * Executes one statement, or several ones as a script, whose number of affected rows is 0.
     *
     * A change of the schema is executed as a script too. After a script, the connection prepares its statements again,
     * which may now have parameters of other types.
     */
    public function exec(string $sql): int
    {
        if (preg_match(self::CHANGES_SCHEMA, $sql) !== 1 && MultipleStatementsException::of($sql) === null) {
            return $this->run($sql, [])->rowCount();
        }
        $this->ensureOwner();
        try {
            $this->connection->executeScript($sql);
        } catch (PostgresException $failure) {
            throw Exception::of($failure);
        }

        return 0;
    }

    /** Quotes a string. Only valid UTF-8 reaches the parser of the server, so no other character can end the text. */
    public function quote(string $value): string
    {
        if (str_contains($value, "\0")) {
            throw Exception::nulByte();
        }
        $quoted = "'" . str_replace("'", "''", $value) . "'";

        // The form E'' has the same meaning with each value of standard_conforming_strings.
        return str_contains($value, '\\') ? ' E' . str_replace('\\', '\\\\', $quoted) : $quoted;
    }

    public function lastInsertId(): int
    {
        try {
            $id = $this->query('SELECT LASTVAL()')->fetchOne();
        } catch (Exception $failure) {
            throw $failure->getSQLState() === self::NO_SEQUENCE_USED ? NoIdentityValue::new($failure) : $failure;
        }
        \assert(\is_int($id));

        return $id;
    }

    public function beginTransaction(): void
    {
        $this->run('BEGIN', []);
        [$this->inTransaction, $this->owner] = [true, \Fiber::getCurrent()];
    }

    public function commit(): void
    {
        $this->end('COMMIT');
    }

    public function rollBack(): void
    {
        $this->end('ROLLBACK');
    }

    public function getServerVersion(): string
    {
        return $this->version;
    }

    /** Returns the borrowed connection, for example to stream rows or to copy data. */
    public function getNativeConnection(): PooledConnection
    {
        return $this->connection;
    }

    /**
     * @internal
     *
     * @param list<mixed> $parameters
     *
     * @throws Exception
     */
    public function run(string $sql, #[\SensitiveParameter] array $parameters): Result
    {
        $this->ensureOwner();
        try {
            return new Result($this->connection->query($sql, $parameters));
        } catch (PostgresException $failure) {
            throw Exception::of($failure);
        }
    }

    private function release(): void
    {
        if ($this->pid === getmypid()) {
            $this->connection->release();
        }
    }

    private static function releaseAll(): void
    {
        foreach (self::$open ?? [] as $connection => $true) {
            $connection->release();
        }
    }

    private function queryVersion(): string
    {
        try {
            $sql = "SELECT current_setting('server_version'), $1::jsonb #>> '{}'";
            [[$version, $text]] = $this->connection->query($sql, ['"json"'])->lists();
            if ($text !== 'json') {
                throw new \LogicException(
                    'A pool for Doctrine needs the option json: JsonMode::Arrays, because Doctrine itself encodes JSON',
                );
            }
            \assert(\is_string($version));

            return $version;
        } catch (\Throwable $failure) {
            $this->connection->release();
            throw $failure;
        }
    }

    private function end(string $sql): void
    {
        $this->ensureOwner();
        [$this->inTransaction, $this->owner] = [false, null];
        $this->run($sql, []);
    }

    private function ensureOwner(): void
    {
        if ($this->inTransaction && $this->owner !== \Fiber::getCurrent()) {
            throw new \LogicException(
                'Another fiber has a transaction open on this Doctrine connection. Create a connection for each fiber',
            );
        }
    }
}

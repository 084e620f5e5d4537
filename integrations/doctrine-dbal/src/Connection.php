<?php

declare(strict_types=1);

namespace Spindle\Doctrine;

use Doctrine\DBAL\Driver\Connection as DriverConnection;
use Doctrine\DBAL\Driver\Exception\NoIdentityValue;
use Revolt\EventLoop;
use Spindle\Internal\CannotWaitException;
use Spindle\Internal\Shutdown;
use Spindle\Postgres\MultipleStatementsException;
use Spindle\Postgres\PooledConnection;
use Spindle\Postgres\PoolTimeoutException;
use Spindle\Postgres\PostgresException;
use Spindle\Postgres\PostgresPool;

/**
 * Borrows a connection from the pool, and returns the connection when this object is destroyed. Doctrine's close()
 * drops Doctrine's reference to this object. An EntityManager is part of a reference cycle. So without close(), the
 * EntityManager keeps this object until PHP collects reference cycles.
 *
 * A Doctrine connection has one count of open transactions, so each fiber needs its own Doctrine connection. From
 * beginTransaction() to the end of the transaction, statements of another fiber throw a \LogicException.
 */
final class Connection implements DriverConnection
{
    /** SQLSTATE of lastval() when the session has used no sequence: object_not_in_prerequisite_state. */
    private const NO_SEQUENCE_USED = '55000';

    /** Statements that end a transaction, or set or end a savepoint. If one is refused, $isAborted becomes true. */
    private const TRANSACTION_CONTROL = '~^(?:\s|/\*.*?\*/)*+(?:COMMIT|ROLLBACK|SAVEPOINT|RELEASE)\b~s';

    /** Seconds between two collections of reference cycles, while a fiber waits for a connection. */
    private const COLLECT_INTERVAL = 0.1;

    /**
     * Whether Doctrine's count of transactions and savepoints is wrong, because a COMMIT, ROLLBACK, SAVEPOINT or
     * RELEASE was refused before it was sent. If so, statements throw until Doctrine ends its transaction. ROLLBACK is
     * sent at this end, or before the next statement if Doctrine has already ended its transaction.
     */
    private bool $isAborted = false;

    /** Whether Doctrine counts an open transaction. */
    private bool $isCounted = false;

    /**
     * The fiber that called beginTransaction(). Null if no transaction is open, or if the caller executed BEGIN as SQL.
     * If another fiber calls commit() or rollBack(), the call is refused, but Doctrine stops counting the transaction.
     * Then $isCounted is false, although there is an owner.
     */
    private ?TransactionOwner $owner = null;

    /** @var \WeakMap<PostgresPool, string>|null versions of the pools' servers */
    private static ?\WeakMap $versions = null;

    /**
     * Borrowed connections, by process id and by id of the Connection object that borrowed them. PHP destroys the
     * objects of a reference cycle, and all objects at shutdown, in undefined order. The references here ensure that
     * PHP destroys a PooledConnection only after its Connection object has released it. Otherwise, the PooledConnection
     * would report that it was not released.
     *
     * @var array<int, array<int, PooledConnection>>
     */
    private static array $borrowed = [];

    private static bool $hasShutdownFunction = false;

    /** Number of fibers that wait for a connection. */
    private static int $waiting = 0;

    /** Id of the timer that collects reference cycles; null while no fiber waits for a connection. */
    private static ?string $collector = null;

    private readonly PooledConnection $connection;

    private readonly string $version;

    /** Pid of the process that may release the connection; not a fork. 0 while the constructor waits for one. */
    private int $pid = 0;

    /**
     * @throws Exception
     * @throws \LogicException when the pool has another JsonMode than Arrays
     */
    public function __construct(PostgresPool $pool)
    {
        self::$versions ??= new \WeakMap();
        try {
            $this->connection = self::borrow($pool);
            $this->pid = (int) getmypid();
            $this->version = self::$versions[$pool] ??= $this->inspectServer();
        } catch (PostgresException|CannotWaitException $failure) {
            throw Exception::of($failure);
        }
        if (!self::$hasShutdownFunction) {
            self::$hasShutdownFunction = true;
            Shutdown::afterApplication(self::releaseAll(...));
        }
        self::$borrowed[$this->pid][spl_object_id($this)] = $this->connection;
    }

    public function __destruct()
    {
        if ($this->pid === getmypid()) {
            $this->connection->release();
            unset(self::$borrowed[$this->pid][spl_object_id($this)]);
        }
    }

    public function prepare(string $sql): Statement
    {
        return new Statement($this, NumberedParameters::of($sql));
    }

    /** Executes one statement, or a script: several statements in one string. The rows of a script can't be fetched. */
    public function query(string $sql): Result
    {
        if (!str_contains($sql, ';') || !$this->isScript($sql)) {
            return $this->run($sql, []);
        }
        $this->runScript($sql);

        return new Result(null);
    }

    /** Executes SQL as {@see query()} does, and returns the number of affected rows: 0 for a script. */
    public function exec(string $sql): int
    {
        return $this->query($sql)->rowCount();
    }

    /**
     * Quotes a string by doubling its quotes and backslashes. No sequence of bytes can hide a quote, because
     * client_encoding is UTF-8, and the server rejects invalid UTF-8.
     */
    public function quote(string $value): string
    {
        if (str_contains($value, "\0")) {
            throw Exception::nulByte();
        }
        $quoted = "'" . str_replace("'", "''", $value) . "'";

        // E'' has the same meaning with each value of standard_conforming_strings. The space separates E from a word
        // before it.
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
        try {
            $this->ensureUsable('BEGIN');
        } finally {
            $this->isCounted = true;
        }
        // The owner is set before BEGIN is sent, so that other fibers can send no statement while this fiber waits.
        $this->owner = new TransactionOwner();
        try {
            $this->rollBackIfAborted();
            $this->send('BEGIN', [], isCounted: true);
        } catch (\Throwable $failure) {
            // If rollBackIfAborted() could not send ROLLBACK, $isAborted is true again. Doctrine counts a transaction
            // even if this method throws. So the new owner stays, and ensureReady() refuses statements until Doctrine
            // ends that transaction.
            if (!$this->isAborted) {
                $this->owner = null;
            }
            throw $failure;
        }
    }

    public function commit(): void
    {
        $this->isCounted = false;
        $hasOwnerEnded = $this->owner?->hasEnded() === true;
        if ($this->isAborted || $hasOwnerEnded) {
            $this->rollBack();
            throw $hasOwnerEnded ? Exception::ownerEnded() : Exception::rolledBack();
        }
        $this->ensureUsable('COMMIT');
        $this->owner = null;
        $this->send('COMMIT', [], isCounted: true);
    }

    public function rollBack(): void
    {
        $this->isCounted = false;
        $this->ensureUsable('ROLLBACK');
        $this->owner = null;
        $this->isAborted = true;
        $this->rollBackIfAborted();
    }

    public function getServerVersion(): string
    {
        return $this->version;
    }

    /** Returns the borrowed connection, for example to copy data, or to stream rows outside of a transaction. */
    public function getNativeConnection(): PooledConnection
    {
        $this->ensureReady('');

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
        $this->ensureReady($sql);

        return $this->send($sql, $parameters, isCounted: $this->owner !== null);
    }

    /**
     * @param list<mixed> $parameters
     * @param bool $isCounted whether beginTransaction() began the transaction, so that Doctrine counts it
     *
     * @throws Exception
     */
    private function send(string $sql, #[\SensitiveParameter] array $parameters, bool $isCounted): Result
    {
        try {
            if ($isCounted && $sql === 'COMMIT') {
                $this->connection->commit();

                return new Result(null);
            }

            return new Result($this->connection->query($sql, $parameters));
        } catch (PostgresException $failure) {
            throw Exception::of($failure);
        } catch (\Throwable $refusal) {
            if ($isCounted) {
                $this->abortIfTransactionControl($sql);
            }
            throw $refusal instanceof CannotWaitException ? Exception::of($refusal) : $refusal;
        }
    }

    /** @throws Exception */
    private function isScript(string $sql): bool
    {
        $isScript = MultipleStatementsException::of($sql) !== null;
        $isScriptWithEscapes = str_contains($sql, "\\'")
            ? MultipleStatementsException::of($sql, escapesWithBackslash: true) !== null
            : $isScript;

        return $isScript === $isScriptWithEscapes
            || $this->run('SHOW standard_conforming_strings', [])->fetchOne() === 'on'
            ? $isScript
            : $isScriptWithEscapes;
    }

    /** @throws Exception */
    private function runScript(string $sql): void
    {
        $this->ensureReady($sql);
        try {
            $this->connection->executeScript($sql);
        } catch (PostgresException|CannotWaitException $failure) {
            throw Exception::of($failure);
        }
    }

    /** Acquires a connection. During the wait, a timer collects cycles: unused EntityManagers may hold connections. */
    private static function borrow(PostgresPool $pool): PooledConnection
    {
        self::$collector ??= EventLoop::unreference(EventLoop::repeat(self::COLLECT_INTERVAL, self::collect(...)));
        ++self::$waiting;
        try {
            return $pool->acquire();
        } catch (PoolTimeoutException $failure) {
            ['in_use' => $inUse, 'max' => $max] = $pool->statistics();
            throw $inUse === $max ? Exception::fullPool($failure) : Exception::of($failure);
        } finally {
            if (--self::$waiting === 0) {
                EventLoop::cancel(self::$collector);
                self::$collector = null;
            }
        }
    }

    private static function collect(): void
    {
        try {
            gc_collect_cycles();
            // @phpstan-ignore catch.neverThrown (a destructor may throw, which would end the event loop)
        } catch (\Throwable $thrown) {
            error_log("A destructor has thrown an exception, while PHP collected cycles: {$thrown}");
        }
    }

    private static function releaseAll(): void
    {
        self::$hasShutdownFunction = false;
        foreach (self::$borrowed[getmypid()] ?? [] as $borrower => $connection) {
            $connection->release();
            unset(self::$borrowed[getmypid()][$borrower]);
        }
    }

    /**
     * Returns the server's version, and checks that the pool does not encode strings as JSON.
     *
     * @throws \LogicException when the pool encodes strings as JSON
     */
    private function inspectServer(): string
    {
        try {
            // The server decodes the JSON string "json". A pool that encodes strings as JSON adds a second pair of
            // quotes, which the server does not remove.
            $sql = "SELECT current_setting('server_version'), $1::jsonb #>> '{}'";
            [[$version, $text]] = $this->connection->query($sql, ['"json"'])->allNumeric();
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

    /** @throws Exception at the end of PHP's shutdown, or when the transaction can only be rolled back */
    private function ensureReady(string $sql): void
    {
        $this->ensureUsable($sql);
        if ($this->isAborted) {
            if ($this->owner !== null) {
                throw $this->isCounted ? Exception::aborted() : Exception::endedByAnotherFiber();
            }
            $this->rollBackIfAborted();
            $this->ensureUsable($sql);
        }
    }

    private function rollBackIfAborted(): void
    {
        if ($this->isAborted) {
            // Reset before this fiber waits. Otherwise, a statement of another fiber would send a second ROLLBACK. That
            // statement needs no ROLLBACK, because the server executes that statement after the ROLLBACK of this fiber.
            $this->isAborted = false;
            $this->send('ROLLBACK', [], isCounted: true);
        }
    }

    /** Sets $isAborted if the refused $sql is TRANSACTION_CONTROL. Called while Doctrine counts a transaction. */
    private function abortIfTransactionControl(string $sql): void
    {
        $this->isAborted = $this->isAborted || preg_match(self::TRANSACTION_CONTROL, strtoupper($sql)) === 1;
    }

    /** @throws Exception when {@see releaseAll()} has released the connection */
    private function ensureUsable(string $sql): void
    {
        if (!isset(self::$borrowed[$this->pid][spl_object_id($this)])) {
            throw Exception::scriptEnded();
        }
        if ($this->owner?->isCurrent() === false) {
            // If the owner has ended, for example by exit(), any other fiber or shutdown function may roll back.
            $hasOwnerEnded = $this->owner->hasEnded();
            if ($hasOwnerEnded && str_starts_with($sql, 'ROLLBACK')) {
                return;
            }
            if ($hasOwnerEnded && !$this->isCounted) {
                // Another fiber has called commit() or rollBack(). The call was refused and has set $isAborted, but
                // Doctrine counts no transaction any more. So Doctrine's rollBack() would fail, and no exception must
                // advise that call. Instead, ROLLBACK is sent before $sql.
                $this->owner = null;

                return;
            }
            $this->abortIfTransactionControl($sql);
            throw new \LogicException($hasOwnerEnded
                ? 'A fiber that has ended left a transaction open on this Doctrine connection. Call rollBack() first'
                : 'Another fiber has a transaction open on this Doctrine connection. '
                    . 'Create a connection for each fiber');
        }
    }
}

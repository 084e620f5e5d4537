<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pgsql;

use Amp\Cancellation;
use PgSql\Connection;
use PgSql\Result as PgsqlResult;
use Spindle\Postgres\ConnectionClosedException;
use Spindle\Postgres\Internal\CopyRows;
use Spindle\Postgres\Internal\FairMutex;
use Spindle\Postgres\Internal\ServerError;
use Spindle\Postgres\Internal\Session;
use Spindle\Postgres\Internal\SessionChanges;
use Spindle\Postgres\Internal\SizeLimits;
use Spindle\Postgres\Internal\SqlText;
use Spindle\Postgres\Internal\StatementLog;
use Spindle\Postgres\Internal\TransactionEndDetector;
use Spindle\Postgres\QueryException;
use Spindle\Postgres\Result;
use Spindle\Postgres\UnsupportedException;

/**
 * Session of the ext-pgsql driver. Statements are executed one at a time, in the order in which fibers send them, and
 * stay prepared. A new statement with parameters needs three round trips: one to prepare it, one to query the types of
 * its parameters, which ext-pgsql does not report, and one to execute it.
 */
final class PgsqlSession implements Session
{
    /** Lock that a fiber holds while it uses the connection. */
    private readonly FairMutex $mutex;

    private readonly Cursors $cursors;

    /** Number of fibers that hold the lock or wait for it. */
    private int $callCount = 0;

    /** Nanoseconds from sending the last query to its answer. */
    private int $lastQueryNanoseconds = 0;

    private string $tag = '';

    public function __construct(
        private readonly PgsqlHandle $handle,
        private readonly PgsqlPreparation $preparation,
        private readonly int $pid,
        private readonly SessionChanges $changes,
        private readonly StatementLog $log,
        private readonly SizeLimits $limits,
    ) {
        $this->mutex = new FairMutex('The connection is busy with a COPY, which waits for its data');
        $this->cursors = new Cursors($handle, $preparation, $limits);
    }

    public function query(
        string $sql,
        #[\SensitiveParameter]
        array $parameters = [],
        ?Cancellation $cancellation = null,
    ): Result {
        SqlText::check($sql);

        return $this->withLock($cancellation, fn(): Result => $this->queryWithLock($sql, $parameters, $cancellation));
    }

    public function stream(
        string $sql,
        #[\SensitiveParameter]
        array $parameters,
        ?Cancellation $cancellation,
    ): \Generator {
        SqlText::check($sql);
        if (!Cursors::canDeclare($sql)) {
            yield from $this->query($sql, $parameters, $cancellation);

            return;
        }
        $this->log->log('Streaming', $sql);
        if (SessionChanges::mayChangeSession($sql)) {
            $this->changes->record($sql);
        }
        $mayChangeMeaning = SessionChanges::mayChangeMeaning($sql);
        $cursor = $this->withLock(
            $cancellation,
            fn(): string => $this->cursors->open($sql, $parameters, $cancellation),
        );
        $count = Cursors::FIRST_ROWS;
        $index = 0;
        $isOpen = true;
        try {
            while ($isOpen) {
                [$rows, $next] = $this->withLock(
                    $cancellation,
                    function () use ($cursor, $count, $sql, $parameters, $mayChangeMeaning, $cancellation): array {
                        if ($mayChangeMeaning) {
                            $this->preparation->startGeneration();
                        }

                        return $this->cursors->fetch($cursor, $count, $sql, $parameters, $cancellation);
                    },
                );
                $isOpen = \count($rows) === $count;
                foreach ($rows as $row) {
                    yield $index++ => $row;
                }
                $count = $next;
            }
        } finally {
            if ($isOpen) {
                $this->cursors->abandon($cursor);
            }
        }
    }

    public function copyFrom(string $sql, #[\SensitiveParameter] iterable $data, ?Cancellation $cancellation): int
    {
        SqlText::checkCopy($sql, 'FROM STDIN');
        $this->log->log('Copying', $sql);
        $describe = fn(string $columns): array => $this->columnTypes($columns, $cancellation);

        $startedAt = hrtime(true);
        $rows = $this->withLock(
            $cancellation,
            fn(): int => (new CopyIn($this->handle))->run(
                $sql,
                CopyRows::of($sql, $data, $this->preparation->types, $describe),
                $cancellation,
            ),
        );
        $this->log->logOutcome("Done: {$rows} rows copied", $sql, hrtime(true) - $startedAt);

        return $rows;
    }

    public function copyTo(string $sql, ?Cancellation $cancellation): \Generator
    {
        SqlText::checkCopy($sql, 'TO STDOUT');
        throw UnsupportedException::with('copyTo()', 'PHP has no function that reads the data of a COPY row by row');
    }

    public function script(
        string $sql,
        ?Cancellation $cancellation = null,
        ?TransactionEndDetector $endDetector = null,
    ): void {
        SqlText::check($sql);
        $this->changes->recordScript($sql);
        $this->withLock($cancellation, function () use ($sql, $cancellation, $endDetector): void {
            $this->preparation->startGeneration();
            $this->scriptWithLock($sql, $cancellation, $endDetector);
        });
        if (SessionChanges::mayChangePrepared($sql)) {
            $this->preparation->forgetAll();
        }
    }

    public function supportsPipelining(): bool
    {
        return false;
    }

    public function inFlight(): int
    {
        return max($this->callCount, $this->handle->isBusy() ? 1 : 0);
    }

    public function canSend(): bool
    {
        return !$this->mutex->isLocked && !$this->handle->isBusy();
    }

    /** Begins immediately. Without pipelining, waiting for the next statement would save nothing. */
    public function begin(string $sql, ?Cancellation $cancellation): void
    {
        $this->withLock($cancellation, fn() => $this->scriptWithLock($sql, $cancellation));
    }

    public function discardUnsentBegin(): bool
    {
        return false;
    }

    public function commandTag(): string
    {
        return $this->tag;
    }

    public function lastQueryNanoseconds(): int
    {
        return $this->lastQueryNanoseconds;
    }

    public function ping(?Cancellation $cancellation = null): void
    {
        $this->withLock($cancellation, fn() => $this->handle->runIgnoringErrors('', $cancellation));
    }

    public function isChanged(): bool
    {
        return $this->changes->hasChanges();
    }

    public function noteChange(): void
    {
        $this->changes->record();
    }

    public function reset(): void
    {
        $this->settle();
        if ($this->handle->status !== 'I') {
            $this->query('ROLLBACK');
        }
        if ($this->changes->hasChanges()) {
            if ($this->changes->mayHaveChangedMeaning()) {
                $this->preparation->startGeneration();
            }
            $this->withLock(null, fn() => $this->scriptWithLock($this->changes->undoScript(), null));
            if ($this->changes->mayHaveChangedPrepared()) {
                $this->preparation->forgetAll();
            }
            $this->changes->clear();
        }
    }

    public function settle(?Cancellation $cancellation = null): void
    {
        while ($this->handle->isOpen() && ($this->mutex->isLocked || $this->handle->isBusy())) {
            if ($this->mutex->isLocked) {
                $this->mutex->acquire($cancellation);
                $this->mutex->release();
            }
            $this->handle->settle($cancellation);
        }
    }

    public function stop(): void
    {
        $this->handle->stop();
    }

    public function lastReceived(): int
    {
        return $this->handle->lastReceived;
    }

    public function isOpen(): bool
    {
        return $this->handle->isOpen();
    }

    public function isReadOnly(): bool
    {
        return $this->handle->isReadOnly;
    }

    public function transactionStatus(): string
    {
        return $this->handle->status;
    }

    public function backendPid(): int
    {
        return $this->pid;
    }

    public function onNotification(?\Closure $listener): void
    {
        $this->handle->listen($listener);
    }

    public function pause(bool $on): void
    {
        $this->handle->pause($on);
    }

    public function onClose(\Closure $callback): void
    {
        $this->handle->onClose($callback);
    }

    public function close(?ConnectionClosedException $reason = null): void
    {
        $this->handle->end(null, $reason);
    }

    /**
     * Locks the session, waits until no call is in progress, cleans up after abandoned calls, and calls $work.
     *
     * @template T
     *
     * @param \Closure(): T $work
     *
     * @return T
     */
    private function withLock(?Cancellation $cancellation, #[\SensitiveParameter] \Closure $work): mixed
    {
        ++$this->callCount;
        try {
            $this->mutex->acquire($cancellation);
            try {
                $this->handle->settle($cancellation);
                if (!$this->cursors->areClosed()) {
                    $this->cursors->closeAbandoned();
                }
                if (!$this->preparation->isClean()) {
                    $this->preparation->cleanUp();
                }

                return $work();
            } finally {
                $this->mutex->release();
            }
        } finally {
            --$this->callCount;
        }
    }

    /**
     * Executes a query. Repeats it while the prepared statement is out of date, up to a limit.
     *
     * @param list<mixed> $parameters
     */
    private function queryWithLock(
        string $sql,
        #[\SensitiveParameter]
        array $parameters,
        ?Cancellation $cancellation,
    ): Result {
        for ($attempt = 1;; ++$attempt) {
            if ($this->preparation->mayBecomeStale) {
                $this->preparation->statementCompleted('');
            }
            $statement = $this->preparation->statement($sql, $parameters, $cancellation);
            $call = $this->execute($sql, $statement, $parameters, $cancellation);
            $this->lastQueryNanoseconds = $call->nanoseconds;
            if ($this->preparation->mayBecomeStale) {
                $this->preparation->statementCompleted(
                    $call->result === null ? '' : pg_result_status($call->result, \PGSQL_STATUS_STRING),
                );
            }
            if ($call->serverError === null && $call->copyResponse === '' && $call->result !== null) {
                return $this->result($sql, $call->result, $statement, $cancellation);
            }
            $types = $statement->parameterTypes ?? [];
            $this->preparation->throwUnlessRetryable($sql, $types, $parameters, $call, $attempt);
        }
    }

    /** @param list<mixed> $parameters */
    private function execute(
        string $sql,
        PgsqlStatement $statement,
        #[\SensitiveParameter]
        array $parameters,
        ?Cancellation $cancellation,
    ): Call {
        $name = $statement->name;
        $this->log->log("Executing {$name}", $sql);
        if ($statement->changesSession && SessionChanges::mayChangeSession($sql)) {
            $this->changes->record($sql);
        }
        if ($statement->changesSession && SessionChanges::mayChangeMeaning($sql)) {
            $this->preparation->startGeneration();
        }
        $values = $statement->encode($parameters, $this->preparation->types);

        return $this->handle->call($cancellation, $name === ''
            ? static fn(Connection $connection): bool|int => pg_send_query_params($connection, $sql, $values)
            : static fn(Connection $connection): bool|int => pg_send_execute($connection, $name, $values));
    }

    private function result(
        string $sql,
        PgsqlResult $result,
        PgsqlStatement $statement,
        ?Cancellation $cancellation,
    ): Result {
        $columns = $statement->columns;
        if ($columns === null && pg_result_status($result) === \PGSQL_TUPLES_OK) {
            $columns = $this->preparation->columnsOfExecuted($result, $cancellation);
            $statement->columns = $columns->types->notLoaded($columns->oids) === [] ? $columns : null;
        }
        $rows = new ResultRows($result, $this->limits, $this->lastQueryNanoseconds, isWhole: true);
        $this->tag = pg_result_status($result, \PGSQL_STATUS_STRING);
        if (\in_array($this->tag, ['DEALLOCATE', 'DEALLOCATE ALL', 'DISCARD ALL'], true)) {
            $this->preparation->forgetAll();
        }
        if ($this->log->isEnabled) {
            $this->log->logOutcome("Done: {$this->tag}, {$rows->count} rows", $sql, $this->lastQueryNanoseconds);
        }

        $affectedRows = $rows->count > 0 ? $rows->count : Call::affectedRowsOf($result);

        return new Result($columns, $rows, $rows->count, $affectedRows);
    }

    private function scriptWithLock(
        string $sql,
        ?Cancellation $cancellation,
        ?TransactionEndDetector $endDetector = null,
    ): void {
        $this->log->log('Executing a script', $sql);
        $startedAt = hrtime(true);
        $call = $this->handle->call(
            $cancellation,
            static fn(Connection $connection): bool|int => pg_send_query($connection, $sql),
            endDetector: $endDetector,
        );
        $isCopy = false;
        while (!$call->done) {
            $isCopy = $isCopy || $call->acceptsData;
            $this->handle->failCopy($call);
            $this->handle->await($call, $cancellation);
        }
        $this->log->logOutcome(
            $call->serverError === null
                ? 'Done: a script'
                : "Failed with SQLSTATE {$call->serverError->sqlState()}",
            $sql,
            hrtime(true) - $startedAt,
        );
        if ($call->serverError !== null) {
            throw QueryException::of($isCopy ? self::noData() : $call->serverError, $sql);
        }
    }

    /** Returns the error for a COPY … FROM STDIN in a script. The server's own error depends on how the COPY ended. */
    private static function noData(): ServerError
    {
        return new ServerError(['S' => 'ERROR', 'C' => '57014', 'M' => 'COPY from stdin failed: a script has no data']);
    }

    /** @return list<int> OIDs of the columns' types */
    private function columnTypes(string $sql, ?Cancellation $cancellation): array
    {
        $call = $this->handle->call(
            $cancellation,
            static fn(Connection $connection): bool|int => pg_send_query($connection, "{$sql} LIMIT 0"),
        );

        return $call->serverError === null && $call->result !== null
            ? $this->preparation->columns($call->result, $cancellation)->oids
            : throw PgsqlErrors::exception($sql, $call->serverError ?? throw Libpq::noResult());
    }
}

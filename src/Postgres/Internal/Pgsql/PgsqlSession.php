<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pgsql;

use Amp\Cancellation;
use PgSql\Connection;
use PgSql\Result as PgsqlResult;
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
 * Speaks to the server by ext-pgsql. Statements run one at a time, in the order in which fibers send them, and stay
 * prepared. A new statement needs a round trip to be prepared. One with parameters needs another to ask for their
 * types, which ext-pgsql does not report.
 */
final class PgsqlSession implements Session
{
    private readonly FairMutex $mutex;

    private readonly Cursors $cursors;

    /** Calls of methods that have not returned. */
    private int $calls = 0;

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

        return $this->alone($cancellation, fn(): Result => $this->queryAlone($sql, $parameters, $cancellation));
    }

    public function stream(
        string $sql,
        #[\SensitiveParameter]
        array $parameters,
        ?Cancellation $cancellation,
    ): \Generator {
        SqlText::check($sql);
        if (!Cursors::fit($sql)) {
            yield from $this->query($sql, $parameters, $cancellation);

            return;
        }
        $this->log->log('Streaming', $sql);
        if (SessionChanges::mayChangeSession($sql)) {
            $this->changes->record($sql);
        }
        $meansElse = SessionChanges::mayChangeMeaning($sql);
        $cursor = $this->alone($cancellation, fn(): string => $this->cursors->open($sql, $parameters, $cancellation));
        $count = Cursors::FIRST_ROWS;
        $index = 0;
        $isOpen = true;
        try {
            while ($isOpen) {
                [$rows, $next] = $this->alone(
                    $cancellation,
                    function () use ($cursor, $count, $sql, $parameters, $meansElse, $cancellation): array {
                        if ($meansElse) {
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
        $rows = $this->alone(
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
        $this->changes->record($sql);
        $this->alone($cancellation, function () use ($sql, $cancellation, $endDetector): void {
            $this->preparation->startGeneration();
            $this->scriptAlone($sql, $cancellation, $endDetector);
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
        return max($this->calls, $this->handle->isBusy() ? 1 : 0);
    }

    public function canSend(): bool
    {
        return !$this->mutex->isLocked && !$this->handle->isBusy();
    }

    /** Begins at once. Without pipelining, waiting for the next statement would save nothing. */
    public function begin(string $sql, ?Cancellation $cancellation): void
    {
        $this->alone($cancellation, fn() => $this->scriptAlone($sql, $cancellation));
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
        $this->alone($cancellation, fn() => $this->handle->command('', $cancellation));
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
            $this->alone(null, fn() => $this->scriptAlone($this->changes->undo(), null));
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

    public function lastActivity(): int
    {
        return $this->handle->lastActivity;
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

    public function close(): void
    {
        $this->handle->end(null);
    }

    /**
     * Calls $work when it is the caller's turn and no call is in progress.
     *
     * @template T
     *
     * @param \Closure(): T $work
     *
     * @return T
     */
    private function alone(?Cancellation $cancellation, #[\SensitiveParameter] \Closure $work): mixed
    {
        ++$this->calls;
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
            --$this->calls;
        }
    }

    /** @param list<mixed> $parameters */
    private function queryAlone(
        string $sql,
        #[\SensitiveParameter]
        array $parameters,
        ?Cancellation $cancellation,
    ): Result {
        for ($attempt = 1;; ++$attempt) {
            if ($this->preparation->unsettled) {
                $this->preparation->settle('');
            }
            $statement = $this->preparation->statement($sql, $parameters, $cancellation);
            $call = $this->execute($sql, $statement, $parameters, $cancellation);
            $this->lastQueryNanoseconds = $call->nanoseconds;
            if ($this->preparation->unsettled) {
                $this->preparation->settle(
                    $call->result === null ? '' : pg_result_status($call->result, \PGSQL_STATUS_STRING),
                );
            }
            if ($call->error === null && $call->copy === '' && $call->result !== null) {
                return $this->result($sql, $call->result, $statement, $cancellation);
            }
            $this->preparation->ensureAgain($sql, $statement->parameters ?? [], $parameters, $call, $attempt);
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
            $columns = $this->preparation->columnsOfWhatIsDone($result, $cancellation);
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

        return new Result($columns, $rows, $rows->count, $rows->count > 0 ? $rows->count : Call::affectedBy($result));
    }

    private function scriptAlone(
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
            $call->error === null ? 'Done: a script' : "Failed with SQLSTATE {$call->error->sqlState()}",
            $sql,
            hrtime(true) - $startedAt,
        );
        if ($call->error !== null) {
            throw QueryException::of($isCopy ? self::noData() : $call->error, $sql);
        }
    }

    /** Returns one error for all ways in which the server reports it. */
    private static function noData(): ServerError
    {
        return new ServerError(['S' => 'ERROR', 'C' => '57014', 'M' => 'COPY from stdin failed: a script has no data']);
    }

    /** @return list<int> type OIDs of a query's columns */
    private function columnTypes(string $sql, ?Cancellation $cancellation): array
    {
        $call = $this->handle->call(
            $cancellation,
            static fn(Connection $connection): bool|int => pg_send_query($connection, "{$sql} LIMIT 0"),
        );

        return $call->error === null && $call->result !== null
            ? $this->preparation->columns($call->result, $cancellation)->oids
            : throw PgsqlErrors::exception($sql, $call->error ?? throw Libpq::noResult());
    }
}

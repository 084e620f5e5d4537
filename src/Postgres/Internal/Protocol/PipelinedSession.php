<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Protocol;

use Amp\Cancellation;
use Spindle\Postgres\ConnectionClosedException;
use Spindle\Postgres\Internal\Columns;
use Spindle\Postgres\Internal\CopyRows;
use Spindle\Postgres\Internal\ServerError;
use Spindle\Postgres\Internal\Session;
use Spindle\Postgres\Internal\SessionChanges;
use Spindle\Postgres\Internal\SqlText;
use Spindle\Postgres\Internal\StatementLog;
use Spindle\Postgres\Internal\TransactionEndDetector;
use Spindle\Postgres\Internal\Types\Types;
use Spindle\Postgres\InvalidParameterException;
use Spindle\Postgres\ProtocolException;
use Spindle\Postgres\QueryException;
use Spindle\Postgres\Result;

/**
 * A session of a server. Each query is one {@see Exchange} of a {@see Pipeline}, and its statement stays prepared.
 * Execution needs one round trip. The encoding of some values, such as strings, depends on the parameter's type. The
 * first execution of a statement with such a value needs another round trip, to learn the types.
 */
final class PipelinedSession implements Session
{
    /** Whether {@see query()} times all statements for {@see lastQueryNanoseconds()}. That makes it slightly slower. */
    public bool $isTimed = false;

    /** Number of the last portal; part of its name. */
    private int $lastPortal = 0;

    /** Nanoseconds that the server took for the last query; negative when unknown. */
    private int $lastQueryNanoseconds = 0;

    private string $tag = '';

    private readonly Preparation $preparation;

    private readonly StatementFailures $failures;

    public function __construct(
        private readonly Pipeline $pipeline,
        private readonly PreparedStatements $statements,
        Types $types,
        private readonly int $pid,
        private readonly SessionChanges $changes,
        private readonly StatementLog $log,
        SchemaChanges $schemaChanges,
    ) {
        $this->preparation = new Preparation($pipeline, $statements, $types, $log, $schemaChanges);
        $this->failures = new StatementFailures($statements, $types, $log);
    }

    public function query(
        string $sql,
        #[\SensitiveParameter]
        array $parameters = [],
        ?Cancellation $cancellation = null,
    ): Result {
        if ($cancellation !== null) {
            return $this->queryStepwise($sql, $parameters, $cancellation);
        }
        $exchange = new Exchange();
        $exchange->isTimed = $this->isTimed;
        if (!$this->send($exchange, $sql, $parameters)) {
            return $this->queryStepwise($sql, $parameters, $cancellation);
        }
        try {
            $exchange->wait();
        } catch (\Throwable $interruption) {
            $this->pipeline->abandon($exchange, null);
            throw $interruption;
        }

        return $this->result($exchange, $sql, $parameters);
    }

    /**
     * Sends a query immediately, if its statement is prepared and nothing has to be awaited or closed first. The answer
     * wakes the fiber that waits on the exchange. Then {@see self::result()} returns the result.
     *
     * @param list<mixed> $parameters
     *
     * @return bool false when nothing was sent. In this case call {@see query()}
     *
     * @throws InvalidParameterException
     */
    public function send(Exchange $exchange, string $sql, #[\SensitiveParameter] array $parameters): bool
    {
        $statement = $this->statements->find($sql);
        $request = $statement?->request($parameters);
        $pipeline = $this->pipeline;
        if (
            $statement === null
            || $request === null
            || $statement->changesSession
            || $this->statements->mayBecomeStale
            || $this->log->isEnabled
        ) {
            return false;
        }
        $mustBeFirst = $statement->mustNotRepeat || $pipeline->pendingBegin !== '';
        $isBusy = $pipeline->cancelling->blocksSending
            || $pipeline->pendingCloses !== ''
            || $pipeline->copyMutex->isLocked;
        if ($isBusy || $mustBeFirst && $pipeline->conversation->exchanges !== [] || !$pipeline->isOpen()) {
            return false;
        }
        $exchange->binary = true;
        $exchange->columns = $statement->columns;
        $exchange->parameterTypes = $statement->parameterTypes;
        if ($pipeline->pendingBegin !== '') {
            $exchange->begins = true;
            $request = $pipeline->pendingBegin . $request;
            $pipeline->pendingBegin = '';
        }
        $pipeline->send($exchange, $request);

        return true;
    }

    /**
     * Returns the result of a query that {@see send()} sent. Sends the query again in two cases: the server did not
     * execute it, because the prepared statement was out of date, or a cancel request has stopped it by mistake.
     *
     * @param list<mixed> $parameters
     */
    public function result(Exchange $exchange, string $sql, #[\SensitiveParameter] array $parameters): Result
    {
        if ($exchange->waitFailure !== null) {
            throw $exchange->waitFailure;
        }
        $this->lastQueryNanoseconds = $exchange->nanoseconds;
        $this->tag = $exchange->tag;
        if ($exchange->serverError !== null || $exchange->copyResponse !== '') {
            $this->throwUnlessRetryable($sql, [], $parameters, $exchange, 1);

            return $this->queryStepwise($sql, $parameters, null);
        }

        return self::rows($exchange, $exchange->columns);
    }

    public function abandon(Exchange $exchange): void
    {
        $this->pipeline->abandon($exchange, null);
    }

    /** @param \Closure(list<Exchange>): void $listener as {@see Pipeline::$onAnswered} */
    public function onAnswered(\Closure $listener): void
    {
        $this->pipeline->onAnswered = $listener;
    }

    /**
     * Asks the server to stop the current statement, so that the statements after it are executed earlier. If the
     * server's error has undone the statement, the session sends it again after them. If the request can't be sent, the
     * statement continues.
     */
    public function postpone(): void
    {
        $this->pipeline->cancelling->request(closesOnFailure: false);
    }

    /** Returns the shortest round trip so far, in nanoseconds. */
    public function roundTrip(): int
    {
        return $this->pipeline->serverTime->roundTrip;
    }

    public function stream(
        string $sql,
        #[\SensitiveParameter]
        array $parameters,
        ?Cancellation $cancellation,
    ): \Generator {
        $cancellation?->throwIfRequested();
        self::check($sql, $parameters);
        $portal = new Portal($this->pipeline, 'spindle_' . ++$this->lastPortal);
        do {
            $statement = $this->statements->find($sql) ?? $this->prepare($sql, $cancellation);
            $this->log->log('Streaming', $sql);
            if ($statement->changesSession && SessionChanges::mayChangeSession($sql)) {
                $this->changes->record($sql);
            }
            $exchange = $portal->exchange();
            $exchange->onSent = $this->preparation->onSent($sql, $statement->changesSession);
            $parts = $portal->opening($statement, $sql, $statement->encode($parameters));
        } while (!$this->submit($exchange, $sql, $statement, $parts, $cancellation));
        $createException = function (
            #[\SensitiveParameter]
            Exchange $exchange,
            #[\SensitiveParameter]
            ServerError $error,
        ) use ($sql, $statement, $parameters): \Throwable {
            $this->statements->forgetStale($sql, $exchange, 1);
            $this->preparation->hadOldTypes($sql, $exchange, $statement->parameterTypes);

            return $this->failures->exception($sql, $error, $statement->parameterTypes, $parameters);
        };
        yield from $portal->rows($exchange, $statement->columns, $createException, $cancellation);
    }

    public function copyFrom(string $sql, #[\SensitiveParameter] iterable $data, ?Cancellation $cancellation): int
    {
        SqlText::checkCopy($sql, 'FROM STDIN');
        $cancellation?->throwIfRequested();
        $this->log->log('Copying', $sql);
        $this->sendBegin($cancellation);
        $describe = fn(string $columns): array => $this->prepare($columns, $cancellation)->columns->oids ?? [];

        $startedAt = hrtime(true);
        $rows = (new CopyRunner($this->pipeline))->copyFrom(
            $sql,
            fn(): \Generator => CopyRows::of($sql, $data, $this->preparation->types, $describe),
            $cancellation,
        );
        $this->log->logOutcome("Done: {$rows} rows copied", $sql, hrtime(true) - $startedAt);

        return $rows;
    }

    public function copyTo(string $sql, ?Cancellation $cancellation): \Generator
    {
        SqlText::checkCopy($sql, 'TO STDOUT');
        $cancellation?->throwIfRequested();
        if (SessionChanges::mayChangeSession($sql)) {
            $this->changes->record($sql);
        }
        $this->log->log('Copying', $sql);
        $this->sendBegin($cancellation);
        try {
            yield from (new CopyRunner($this->pipeline))->copyTo($sql, $cancellation);
        } finally {
            if (SessionChanges::mayChangeMeaning($sql)) {
                $this->preparation->startGeneration();
            }
        }
    }

    public function script(
        string $sql,
        ?Cancellation $cancellation = null,
        ?TransactionEndDetector $endDetector = null,
    ): void {
        SqlText::check($sql);
        $cancellation?->throwIfRequested();
        $this->changes->recordScript($sql);
        $this->runScript($sql, true, $cancellation, $endDetector);
    }

    /**
     * Sends a pending BEGIN with its own Sync, and waits for the answer. Without that Sync, the server would skip a
     * simple query after a failed BEGIN and never answer it.
     */
    private function sendBegin(?Cancellation $cancellation): void
    {
        if ($this->pipeline->pendingBegin !== '') {
            $exchange = new Exchange();
            $exchange->executes = false;
            $this->pipeline->submit($exchange, [FrontendMessages::SYNC], $cancellation);
            $this->awaitBegin($exchange, $cancellation);
        }
    }

    /** @param bool $mayChangeMeaning whether the script may change the meaning of SQL texts */
    private function runScript(
        string $sql,
        bool $mayChangeMeaning,
        ?Cancellation $cancellation,
        ?TransactionEndDetector $endDetector = null,
    ): void {
        $this->log->log('Executing a script', $sql);
        $startedAt = hrtime(true);
        $this->sendBegin($cancellation);
        $exchange = new Exchange(extended: false);
        $exchange->mustNotRepeat = true;
        $exchange->endDetector = $endDetector;
        if ($mayChangeMeaning) {
            $exchange->onSent = $this->preparation->onMeaningChange(...);
        }
        $this->pipeline->submit($exchange, [FrontendMessages::query($sql)], $cancellation);
        $this->pipeline->await($exchange, $cancellation);
        while (!$exchange->done) {
            // The script contains a COPY … FROM STDIN, for which there are no data.
            if ($exchange->copyResponse === 'G') {
                $this->pipeline->write(FrontendMessages::copyFail('a script has no data'));
                // Otherwise the pipeline would wake this loop after the write, and the loop would write again.
                $exchange->copyResponse = '';
            }
            $this->pipeline->await($exchange, $cancellation);
        }
        if ($exchange->waitFailure !== null) {
            throw $exchange->waitFailure;
        }
        $this->preparation->noteSchemaChange(SchemaChanges::isChangingScript($sql));
        $this->log->logOutcome(
            $exchange->serverError === null
                ? 'Done: a script'
                : "Failed with SQLSTATE {$exchange->serverError->sqlState()}",
            $sql,
            hrtime(true) - $startedAt,
        );
        if ($exchange->serverError !== null) {
            throw QueryException::of($exchange->serverError, $sql);
        }
        if (SessionChanges::mayChangePrepared($sql)) {
            $this->statements->forgetAll();
        }
    }

    public function inFlight(): int
    {
        return $this->pipeline->inFlight();
    }

    public function settle(?Cancellation $cancellation = null): void
    {
        $this->pipeline->settle(true, $cancellation);
    }

    public function stop(): void
    {
        $this->pipeline->stop();
    }

    /** Returns when bytes were last received, or the session was opened, by hrtime(). */
    public function lastReceived(): int
    {
        return $this->pipeline->lastReceived;
    }

    public function isOpen(): bool
    {
        return $this->pipeline->isOpen();
    }

    public function begin(string $sql, ?Cancellation $cancellation): void
    {
        $cancellation?->throwIfRequested();
        $this->log->log('Beginning a transaction', $sql);
        $this->preparation->keepTentative();
        // The messages are sent ahead of the next statement, with no Sync between, so if BEGIN fails, the server skips
        // that statement.
        $this->pipeline->pendingBegin = FrontendMessages::parse('', $sql)
            . implode('', FrontendMessages::bind("\0\0\0\0", [], "\0\0"))
            . FrontendMessages::EXECUTE;
    }

    public function discardUnsentBegin(): bool
    {
        $isUnsent = $this->pipeline->pendingBegin !== '';
        $this->pipeline->pendingBegin = '';

        return $isUnsent;
    }

    public function commandTag(): string
    {
        return $this->tag;
    }

    /** Returns how long the server took for the query that returned last, in nanoseconds; negative when unknown. */
    public function lastQueryNanoseconds(): int
    {
        return $this->lastQueryNanoseconds;
    }

    public function ping(?Cancellation $cancellation = null): void
    {
        $exchange = new Exchange();
        $exchange->executes = false;
        $this->pipeline->submit($exchange, [FrontendMessages::SYNC], $cancellation);
        $this->pipeline->await($exchange, $cancellation);
    }

    public function isChanged(): bool
    {
        return $this->changes->hasChanges();
    }

    /** Records that the session may have been changed in a way that the text of its statements does not show. */
    public function noteChange(): void
    {
        $this->changes->record();
    }

    /** Rolls back an open transaction, and undoes changes of the session. */
    public function reset(): void
    {
        $this->settle();
        if ($this->pipeline->conversation->status !== 'I') {
            $this->query('ROLLBACK');
        }
        if ($this->changes->hasChanges()) {
            $this->runScript($this->changes->undoScript(), $this->changes->mayHaveChangedMeaning(), null);
            if ($this->changes->mayHaveChangedPrepared()) {
                $this->statements->forgetAll();
            }
            $this->changes->clear();
        }
    }

    /** Whether the server has refused a write because it is read-only, for example after it became a standby. */
    public function isReadOnly(): bool
    {
        return $this->pipeline->conversation->isReadOnly;
    }

    public function transactionStatus(): string
    {
        return $this->pipeline->conversation->status;
    }

    public function backendPid(): int
    {
        return $this->pid;
    }

    /** Sets the listener for notifications; null removes it. A listener keeps the event loop running. */
    public function onNotification(?\Closure $listener): void
    {
        $this->pipeline->listen($listener);
    }

    public function pause(bool $on): void
    {
        $this->pipeline->pause($on);
    }

    /** Adds a callback for the end of the session. The callback gets the reason, or null after {@see close()}. */
    public function onClose(\Closure $callback): void
    {
        $this->pipeline->onClose($callback);
    }

    public function close(?ConnectionClosedException $reason = null): void
    {
        $this->pipeline->end(null, $reason);
    }

    /** @param Columns|null $columns null for a statement without rows */
    private static function rows(Exchange $exchange, ?Columns $columns): Result
    {
        if ($exchange->tooLarge !== null) {
            throw $exchange->tooLarge;
        }
        if ($exchange->isPortalSuspended || $exchange->rowCount > 0 && $columns === null) {
            throw ProtocolException::malformed(
                $exchange->isPortalSuspended
                    ? 'the server sent only a part of the rows that the client had requested'
                    : 'the server sent rows for a statement without columns',
            );
        }

        return new Result($columns, $exchange, $exchange->rowCount, $exchange->affectedRows());
    }

    /**
     * Executes a query, and prepares its statement first if that is necessary. Repeats the execution as often as
     * {@see StatementFailures} permits.
     *
     * @param list<mixed> $parameters
     */
    private function queryStepwise(
        string $sql,
        #[\SensitiveParameter]
        array $parameters,
        ?Cancellation $cancellation,
    ): Result {
        $cancellation?->throwIfRequested();
        self::check($sql, $parameters);
        for ($attempt = 1;; ++$attempt) {
            $startedAt = hrtime(true);
            $statement = $this->statements->find($sql);
            $onSent = $this->preparation->onSent($sql, $statement === null || $statement->changesSession);
            if ($statement === null && self::needsTypes($parameters)) {
                $statement = $this->prepare($sql, $cancellation);
            }
            if (($statement === null || $statement->changesSession) && SessionChanges::mayChangeSession($sql)) {
                $this->changes->record($sql);
            }
            if ($statement === null) {
                $name = $this->statements->newName($sql);
                $exchange = $this->preparation->execute($name, $sql, $parameters, $cancellation, $onSent);
                $statement = $exchange->parameterTypes === null
                    ? null
                    : $this->preparation->register($name, $sql, $exchange, $cancellation);
            } else {
                $exchange = $this->execute($sql, $statement, $parameters, $cancellation, $onSent);
                if ($exchange === null) {
                    --$attempt; // the statement was not sent, so this does not count as an attempt

                    continue;
                }
            }
            $this->lastQueryNanoseconds = $exchange->nanoseconds;
            $exchange->nanoseconds = hrtime(true) - $startedAt; // the log shows the time that the caller waited
            $this->tag = $exchange->tag;
            $this->preparation->onCompleted($exchange->tag, $sql);
            if ($exchange->serverError === null && $exchange->copyResponse === '') {
                $outcome = "Done: {$exchange->tag}, {$exchange->rowCount} rows";
                $this->log->logOutcome($outcome, $sql, $exchange->nanoseconds);

                return self::rows($exchange, $statement?->columns);
            }
            $types = $statement->parameterTypes ?? [];
            $this->throwUnlessRetryable($sql, $types, $parameters, $exchange, $attempt);
        }
    }

    /**
     * @param list<mixed> $parameters
     * @param (\Closure(Exchange): void)|null $onSent
     *
     * @return Exchange|null null when the statement has to be prepared again: {@see submit()}
     */
    private function execute(
        string $sql,
        PreparedStatement $statement,
        #[\SensitiveParameter]
        array $parameters,
        ?Cancellation $cancellation,
        ?\Closure $onSent,
    ): ?Exchange {
        $this->log->log("Executing {$statement->name}", $sql);
        $values = $statement->encode($parameters);
        $exchange = new Exchange();
        $exchange->binary = true;
        $exchange->mustNotRepeat = $statement->mustNotRepeat;
        $exchange->onSent = $onSent;
        $parts = [
            $statement->name === '' ? FrontendMessages::parse('', $sql) : '',
            ...$statement->bind($values),
            FrontendMessages::EXECUTE . FrontendMessages::SYNC,
        ];
        if (!$this->submit($exchange, $sql, $statement, $parts, $cancellation)) {
            return null;
        }
        $this->pipeline->await($exchange, $cancellation);

        return $exchange;
    }

    /**
     * Submits a prepared statement for execution. While the exchange waits to be sent, other fibers may close the
     * statement or change the meaning of its text. Executing it could then use other tables, or raise an error that
     * fails the transaction. So in this case the session sends only a Sync.
     *
     * @param non-empty-list<string> $parts
     *
     * @return bool false when nothing was executed, and the statement has to be prepared again
     */
    private function submit(
        #[\SensitiveParameter]
        Exchange $exchange,
        string $sql,
        PreparedStatement $statement,
        #[\SensitiveParameter]
        array $parts,
        ?Cancellation $cancellation,
    ): bool {
        $pipeline = $this->pipeline;
        $mustBeFirst = $exchange->mustNotRepeat || $pipeline->pendingBegin !== '';
        $mustWait = $mustBeFirst && $pipeline->conversation->exchanges !== [];
        if (!$mustWait && !$pipeline->cancelling->blocksSending && !$pipeline->copyMutex->isLocked) {
            $pipeline->submit($exchange, $parts, $cancellation);

            return true;
        }
        $generation = $this->statements->generation;
        $onSent = $exchange->onSent;
        $exchange->onSent = function (#[\SensitiveParameter] Exchange $exchange) use (
            $sql,
            $statement,
            $parts,
            $generation,
            $onSent,
        ): void {
            $exchange->executes = $generation === $this->statements->generation
                && ($statement->name === '' || $this->statements->find($sql) === $statement);
            array_map($this->pipeline->write(...), $exchange->executes ? $parts : [FrontendMessages::SYNC]);
            if ($exchange->executes && $onSent !== null) {
                $onSent($exchange);
            }
        };
        $pipeline->submit($exchange, [''], $cancellation);
        if (!$exchange->executes) {
            $this->awaitBegin($exchange, $cancellation);
        }

        return $exchange->executes;
    }

    /** Waits for an exchange that consists of a Sync, and of a BEGIN if one was pending. */
    private function awaitBegin(#[\SensitiveParameter] Exchange $exchange, ?Cancellation $cancellation): void
    {
        $this->pipeline->await($exchange, $cancellation);
        if ($exchange->serverError !== null) {
            throw QueryException::of($exchange->serverError, 'BEGIN');
        }
    }

    /**
     * @param array<mixed> $parameters
     *
     * @throws \LogicException|InvalidParameterException when the statement can't be sent
     */
    private static function check(string $sql, #[\SensitiveParameter] array $parameters): void
    {
        SqlText::check($sql);
        if (SqlText::isCopy($sql)) {
            // The server would read the messages that follow as the data of the COPY.
            throw new \LogicException('A COPY needs copyFrom() or copyTo()');
        }
        if (!array_is_list($parameters)) {
            throw new \LogicException(
                'Parameters must be a list, not an array with other keys. Write $1 for its first value, $2 for the'
                    . ' second and so on, not :name',
            );
        }
        if (\count($parameters) > FrontendMessages::MAX_PARAMETERS) {
            throw InvalidParameterException::tooMany(\count($parameters), FrontendMessages::MAX_PARAMETERS);
        }
    }

    /** @param list<mixed> $parameters */
    private static function needsTypes(#[\SensitiveParameter] array $parameters): bool
    {
        foreach ($parameters as $value) {
            if (Types::needsType($value)) {
                return true;
            }
        }

        return false;
    }

    /** Returns the statement, prepared in the current generation. */
    private function prepare(string $sql, ?Cancellation $cancellation): PreparedStatement
    {
        for ($attempt = 1;; ++$attempt) {
            $name = $this->statements->newName($sql);
            $exchange = $this->preparation->prepare($name, $sql, $cancellation);
            if ($exchange->serverError === null) {
                $statement = $this->preparation->register($name, $sql, $exchange, $cancellation);
                if ($exchange->generation === $this->statements->generation) {
                    return $statement;
                }
                continue;
            }
            $this->failures->throwUnlessRetryable($sql, [], [], $exchange, $attempt);
        }
    }

    /**
     * Throws the failure, unless the statement may be sent again: {@see StatementFailures}, or its types were old.
     *
     * @param list<int> $types OIDs of the parameters' types; empty while they are unknown
     * @param list<mixed> $parameters
     */
    private function throwUnlessRetryable(
        string $sql,
        array $types,
        #[\SensitiveParameter]
        array $parameters,
        #[\SensitiveParameter]
        Exchange $exchange,
        int $attempt,
    ): void {
        $sentTypes = $exchange->parameterTypes ?? $types;
        if ($attempt > 1 || !$this->preparation->hadOldTypes($sql, $exchange, $sentTypes)) {
            $this->failures->throwUnlessRetryable($sql, $types, $parameters, $exchange, $attempt);
        }
    }
}

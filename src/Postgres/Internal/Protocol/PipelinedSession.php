<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Protocol;

use Amp\Cancellation;
use Spindle\Postgres\ConnectionClosedException;
use Spindle\Postgres\Internal\CallerTrace;
use Spindle\Postgres\Internal\Columns;
use Spindle\Postgres\Internal\CopyRows;
use Spindle\Postgres\Internal\FairMutex;
use Spindle\Postgres\Internal\ServerError;
use Spindle\Postgres\Internal\Session;
use Spindle\Postgres\Internal\SessionChanges;
use Spindle\Postgres\Internal\SqlText;
use Spindle\Postgres\Internal\StatementLog;
use Spindle\Postgres\Internal\TransactionEndDetector;
use Spindle\Postgres\Internal\Types\Types;
use Spindle\Postgres\InvalidParameterException;
use Spindle\Postgres\Result;

/**
 * A session of a server. Each query is one {@see Exchange} of a {@see Pipeline}, and its statement stays prepared.
 * Execution needs one round trip, with one exception. The encoding of some values, such as strings, depends on the
 * parameter's type. So the first execution with such a value needs a second round trip, to learn the types.
 */
final class PipelinedSession implements Session
{
    /** Whether {@see query()} measures {@see lastQueryNanoseconds()}. The measurement makes queries slightly slower. */
    public bool $isTimed = false;

    /** @var array<string, string> messages that execute a BEGIN, by its SQL text */
    private static array $beginMessages = [];

    private int $lastPortal = 0;

    private readonly Preparation $preparation;

    private readonly StatementFailures $failures;

    private readonly StatementRunner $runner;

    public function __construct(
        public readonly Pipeline $pipeline,
        private readonly PreparedStatements $statements,
        Types $types,
        private readonly int $pid,
        public readonly SessionChanges $changes,
        private readonly StatementLog $log,
        SchemaChanges $schemaChanges,
    ) {
        $this->preparation = new Preparation($pipeline, $statements, $types, $log, $schemaChanges);
        $this->failures = new StatementFailures($statements, $types, $log, $pipeline->conversation);
        $this->runner = new StatementRunner(
            $pipeline,
            $statements,
            $this->preparation,
            $this->failures,
            $changes,
            $log,
        );
    }

    public function query(
        string $sql,
        #[\SensitiveParameter]
        array $parameters = [],
        ?Cancellation $cancellation = null,
    ): Result {
        $exchange = new Exchange();
        $exchange->isTimed = $this->isTimed;
        if ($cancellation !== null || !$this->send($exchange, $sql, $parameters)) {
            try {
                return $this->runner->query($sql, $parameters, $cancellation);
            } catch (\Throwable $failure) {
                $this->preparation->onFailure($sql, $failure);
                throw $failure;
            }
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
     * Sends a query immediately if its statement is prepared, and {@see StatementRunner} has nothing to wait for, to
     * record or to log. The answer wakes the fiber that waits on the exchange. That fiber must call self::result().
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
            || $this->statements->clock !== $statement->lastUse // user code in request() may have removed it
            || $this->statements->mayBecomeStale
            || $this->log->isEnabled
        ) {
            return false;
        }
        $mustBeFirst = $statement->mustNotRepeat || $pipeline->pendingBegin !== '';
        $isBusy = $pipeline->cancelling->blocksSending
            || $pipeline->pendingCloses !== ''
            || $pipeline->copyMutex->isLocked;
        if ($isBusy || $mustBeFirst && $pipeline->conversation->exchanges !== [] || $pipeline->endReason !== null) {
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
     * Returns the result of a query that {@see send()} sent. Sends the query again if the server did not execute it
     * because the prepared statement was out of date, or if a cancel request stopped the query by mistake.
     *
     * @param list<mixed> $parameters
     */
    public function result(Exchange $exchange, string $sql, #[\SensitiveParameter] array $parameters): Result
    {
        if ($exchange->waitFailure !== null) {
            throw CallerTrace::of($exchange->waitFailure);
        }
        $this->runner->lastQueryNanoseconds = $exchange->nanoseconds;
        $this->runner->tag = $exchange->tag;
        if ($exchange->serverError !== null || $exchange->copyResponse !== '') {
            $this->runner->throwUnlessRetryable($sql, [], $parameters, $exchange, 1);

            return $this->runner->query($sql, $parameters, null);
        }

        return $exchange->result($exchange->columns);
    }

    /**
     * Cancels the current statement, so that later statements are executed first. If the server has undone all effects
     * of the cancelled statement, the session sends it again after the later statements. If the cancel request fails,
     * the statement continues. Then {@see reset()} closes the session if the request may still arrive.
     */
    public function postpone(): void
    {
        $this->pipeline->cancelling->request(closesOnFailure: false);
    }

    public function stream(
        string $sql,
        #[\SensitiveParameter]
        array $parameters,
        ?Cancellation $cancellation,
    ): \Generator {
        $cancellation?->throwIfRequested();
        StatementRunner::check($sql, $parameters);
        $portal = new Portal($this->pipeline, 'spindle_' . ++$this->lastPortal);
        do {
            $statement = $this->statements->find($sql) ?? $this->runner->prepare($sql, $cancellation);
            $values = $this->runner->encode($sql, $statement, $parameters, $cancellation);
            $this->log->log('Streaming', $sql);
            if ($statement->changesSession && SessionChanges::mayChangeSession($sql)) {
                $this->changes->record($sql);
            }
            $exchange = $portal->exchange($statement->name !== '');
            $exchange->onSent = $this->preparation->onSent($sql, $statement->changesSession);
            $parts = $portal->opening($statement, $sql, $values);
        } while (!$this->runner->submit($exchange, $sql, $statement, $parts, $cancellation));
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
        $columns = fn(): ?Columns => $exchange->parameterTypes === null
            ? $statement->columns
            : $this->preparation->register('', $sql, $exchange, $cancellation)->columns;
        yield from $portal->rows($exchange, $columns, $createException, $cancellation);
        $this->preparation->onCompleted($exchange->tag, $sql, $statement->columns !== null);
    }

    public function copyFrom(string $sql, #[\SensitiveParameter] iterable $data, ?Cancellation $cancellation): int
    {
        SqlText::checkCopy($sql, 'FROM STDIN', $this->pipeline->conversation->escapesWithBackslash);
        $cancellation?->throwIfRequested();
        $this->log->log('Copying', $sql);
        $this->runner->sendBegin($cancellation);
        $describe = fn(string $columns): array => $this->runner->prepare($columns, $cancellation)->columns->oids ?? [];

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
        SqlText::checkCopy($sql, 'TO STDOUT', $this->pipeline->conversation->escapesWithBackslash);
        $cancellation?->throwIfRequested();
        if (SessionChanges::mayChangeSession($sql)) {
            $this->changes->record($sql);
        }
        $this->log->log('Copying', $sql);
        $this->runner->sendBegin($cancellation);
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
        SqlText::ensureNoNul($sql);
        $cancellation?->throwIfRequested();
        $this->changes->recordScript($sql);
        try {
            $this->runner->script($sql, true, $cancellation, $endDetector);
        } catch (\Throwable $failure) {
            $this->preparation->onFailure($sql, $failure);
            throw $failure;
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

    public function isOpen(): bool
    {
        return $this->pipeline->endReason === null;
    }

    public function begin(string $sql, ?Cancellation $cancellation): void
    {
        $cancellation?->throwIfRequested();
        $this->log->log('Beginning a transaction', $sql);
        $this->preparation->keepTentative();
        // BEGIN is sent ahead of the next statement, without a Sync between them. If BEGIN fails, the server skips that
        // statement.
        $this->pipeline->pendingBegin = self::$beginMessages[$sql] ??= FrontendMessages::parse('', $sql)
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
        return $this->runner->tag;
    }

    /** Returns how long the server took for the query that returned last, in nanoseconds; negative when unknown. */
    public function lastQueryNanoseconds(): int
    {
        return $this->runner->lastQueryNanoseconds;
    }

    public function ping(?Cancellation $cancellation = null): void
    {
        $exchange = new Exchange();
        $exchange->executes = false;
        $this->pipeline->submit($exchange, [FrontendMessages::SYNC], $cancellation);
        $this->pipeline->await($exchange, $cancellation);
    }

    /** Rolls back an open transaction, and undoes session changes. Closes the session if a transaction stays open. */
    public function reset(): void
    {
        $this->settle();
        if ($this->pipeline->cancelling->mayArriveLate) {
            $this->close();

            return;
        }
        // The last borrower may have begun a transaction without sending a statement.
        $this->discardUnsentBegin();
        if ($this->pipeline->conversation->status !== 'I') {
            $this->query('ROLLBACK');
        }
        if ($this->changes->hasAny) {
            $this->runner->script($this->changes->undoScript(), $this->changes->meaningMayDiffer, null);
            if ($this->changes->preparedMayDiffer) {
                $this->statements->forgetAll();
            }
            $this->changes->clear();
        }
        if ($this->pipeline->conversation->isUnsuitable) {
            // The server has refused a write. If only that transaction was READ ONLY, the session is suitable.
            $answer = $this->query('SHOW transaction_read_only')->value();
            $this->pipeline->conversation->isUnsuitable = $answer === 'on';
        }
        if ($this->pipeline->conversation->status !== 'I') {
            $this->close();
        }
    }

    public function transactionStatus(): string
    {
        return $this->pipeline->conversation->status;
    }

    public function backendPid(): int
    {
        return $this->pid;
    }

    public function endWaitsFor(FairMutex $mutex): void
    {
        $this->pipeline->endWaitsFor($mutex);
    }

    public function close(?ConnectionClosedException $reason = null): void
    {
        $this->pipeline->end(null, $reason);
    }
}

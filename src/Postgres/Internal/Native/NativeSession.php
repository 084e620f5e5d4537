<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Native;

use Amp\Cancellation;
use Spindle\Postgres\Internal\Columns;
use Spindle\Postgres\Internal\CopyRows;
use Spindle\Postgres\Internal\ServerError;
use Spindle\Postgres\Internal\Session;
use Spindle\Postgres\Internal\SessionChanges;
use Spindle\Postgres\Internal\SqlText;
use Spindle\Postgres\Internal\StatementLog;
use Spindle\Postgres\Internal\TransactionEndDetector;
use Spindle\Postgres\Internal\Types\QuotedValues;
use Spindle\Postgres\Internal\Types\Types;
use Spindle\Postgres\InvalidParameterException;
use Spindle\Postgres\MultipleStatementsException;
use Spindle\Postgres\ProtocolException;
use Spindle\Postgres\QueryException;
use Spindle\Postgres\Result;

/**
 * Implements the wire protocol in PHP. Each query is one exchange of a {@see Pipeline}, and its statement stays
 * prepared. The encoding of some values, such as strings, depends on the parameter's type. The first execution with
 * such a value needs a second round trip to learn the types. Later executions need one.
 */
final class NativeSession implements Session
{
    /** How often a statement is sent again because the prepared one was out of date. */
    private const MAX_RETRIES = 3;

    /** Whether execution times are measured for {@see lastQueryNanoseconds()}, which takes some time itself. */
    public bool $isTimed = false;

    private int $portals = 0;

    private int $lastQueryNanoseconds = 0;

    private string $tag = '';

    /** The last exchange that changed what statements mean, while the end of the transaction may undo the change. */
    private ?Exchange $meaningChange = null;

    private readonly Preparation $preparation;

    public function __construct(
        private readonly Pipeline $pipeline,
        private readonly PreparedStatements $statements,
        Types $types,
        private readonly int $pid,
        private readonly SessionChanges $changes,
        private readonly StatementLog $log,
    ) {
        $this->preparation = new Preparation($pipeline, $statements, $types, $log);
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
     * Sends a query directly, if its statement is prepared and the connection has nothing else to do first. The answer
     * wakes the exchange; `result()` then decodes it.
     *
     * @param list<mixed> $parameters
     *
     * @return bool false when nothing was sent, because the query needs {@see query()}
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
            || $this->statements->unsettled
            || $this->log->isEnabled
        ) {
            return false;
        }
        $mustBeFirst = $statement->mustNotRepeat || $pipeline->begin !== '';
        $isBusy = $pipeline->cancelling->unsettled || $pipeline->closing !== '' || $pipeline->copyMutex->isLocked;
        if ($isBusy || $mustBeFirst && $pipeline->conversation->exchanges !== [] || !$pipeline->isOpen()) {
            return false;
        }
        $exchange->binary = true;
        $exchange->columns = $statement->columns;
        $exchange->parameters = $statement->parameters;
        if ($pipeline->begin !== '') {
            $exchange->begins = true;
            $request = $pipeline->begin . $request;
            $pipeline->begin = '';
        }
        $pipeline->send($exchange, $request);

        return true;
    }

    /**
     * Returns the result of a query that {@see send()} sent. Sends the query again if it was not executed.
     *
     * @param list<mixed> $parameters
     */
    public function result(Exchange $exchange, string $sql, #[\SensitiveParameter] array $parameters): Result
    {
        if ($exchange->failure !== null) {
            throw $exchange->failure;
        }
        $this->lastQueryNanoseconds = $exchange->nanoseconds;
        $this->tag = $exchange->tag;
        if ($exchange->error !== null || $exchange->copy !== '') {
            $this->ensureAgain($sql, [], $parameters, $exchange, 1);

            return $this->queryStepwise($sql, $parameters, null);
        }

        return self::rows($exchange, $exchange->columns);
    }

    /** Abandons a query that {@see send()} sent. */
    public function abandon(Exchange $exchange): void
    {
        $this->pipeline->abandon($exchange, null);
    }

    /**
     * @param \Closure(list<Exchange>): void $listener called with answered exchanges, before their callers are resumed
     */
    public function onAnswered(\Closure $listener): void
    {
        $this->pipeline->onAnswered = $listener;
    }

    /**
     * Asks the server to stop the current statement. A statement that was stopped and undone is sent again, behind all
     * others. Nothing changes if the request can't be sent.
     */
    public function postpone(): void
    {
        $this->pipeline->cancelling->request(isNeeded: false);
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
        $portal = new Portal($this->pipeline, 'spindle_' . ++$this->portals);
        do {
            $statement = $this->statements->find($sql) ?? $this->prepare($sql, $cancellation);
            $this->log->log('Streaming', $sql);
            if ($statement->changesSession && SessionChanges::mayChangeSession($sql)) {
                $this->changes->record($sql);
            }
            $exchange = $portal->exchange();
            $exchange->onSent = $this->onSent($sql, $statement->changesSession);
            $parts = $portal->opening($statement, $sql, $statement->encode($parameters));
        } while (!$this->submit($exchange, $sql, $statement, $parts, $cancellation));
        $failed = function (
            #[\SensitiveParameter]
            Exchange $exchange,
            #[\SensitiveParameter]
            ServerError $error,
        ) use ($sql, $statement, $parameters): \Throwable {
            $this->forgetStale($sql, $exchange, 1);

            return $this->exception($sql, $error, $statement->parameters, $parameters);
        };
        yield from $portal->rows($exchange, $statement->columns, $failed, $cancellation);
    }

    public function copyFrom(string $sql, #[\SensitiveParameter] iterable $data, ?Cancellation $cancellation): int
    {
        SqlText::checkCopy($sql, 'FROM STDIN');
        $cancellation?->throwIfRequested();
        $this->log->log('Copying', $sql);
        $this->sendBegin($cancellation);
        $describe = fn(string $columns): array => $this->prepare($columns, $cancellation)->columns->oids ?? [];

        $startedAt = hrtime(true);
        $rows = (new Copies($this->pipeline))->in(
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
            yield from (new Copies($this->pipeline))->out($sql, $cancellation);
        } finally {
            if (SessionChanges::mayChangeMeaning($sql)) {
                $this->endGeneration();
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
        $this->changes->record($sql);
        $this->runScript($sql, true, $cancellation, $endDetector);
    }

    /** Sends a pending BEGIN with a Sync. Without the Sync, the server would skip the next query if BEGIN fails. */
    private function sendBegin(?Cancellation $cancellation): void
    {
        if ($this->pipeline->begin !== '') {
            $exchange = new Exchange();
            $exchange->executes = false;
            $this->pipeline->submit($exchange, [FrontendMessages::SYNC], $cancellation);
            $this->awaitBegin($exchange, $cancellation);
        }
    }

    /** @param bool $meansElse whether the script may change what statements mean */
    private function runScript(
        string $sql,
        bool $meansElse,
        ?Cancellation $cancellation,
        ?TransactionEndDetector $endDetector = null,
    ): void {
        $this->log->log('Executing a script', $sql);
        $startedAt = hrtime(true);
        $this->sendBegin($cancellation);
        $exchange = new Exchange(extended: false);
        $exchange->mustNotRepeat = true;
        $exchange->endDetector = $endDetector;
        if ($meansElse) {
            $exchange->onSent = $this->startGeneration(...);
        }
        $this->pipeline->submit($exchange, [FrontendMessages::query($sql)], $cancellation);
        $this->pipeline->await($exchange, $cancellation);
        while (!$exchange->done) {
            // The script contains a COPY … FROM STDIN.
            if ($exchange->copy === 'G') {
                $this->pipeline->write(FrontendMessages::copyFail('a script has no data'));
                // Otherwise writing the message wakes this loop, which would write it again.
                $exchange->copy = '';
            }
            $this->pipeline->await($exchange, $cancellation);
        }
        if ($exchange->failure !== null) {
            throw $exchange->failure;
        }
        $this->log->logOutcome(
            $exchange->error === null ? 'Done: a script' : "Failed with SQLSTATE {$exchange->error->sqlState()}",
            $sql,
            hrtime(true) - $startedAt,
        );
        if ($exchange->error !== null) {
            throw QueryException::of($exchange->error, $sql);
        }
        if (SessionChanges::mayChangePrepared($sql)) {
            $this->statements->forgetAll();
        }
    }

    public function supportsPipelining(): bool
    {
        return true;
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

    public function lastActivity(): int
    {
        return $this->pipeline->lastActivity;
    }

    public function isOpen(): bool
    {
        return $this->pipeline->isOpen();
    }

    public function canSend(): bool
    {
        return !$this->pipeline->cancelling->unsettled && !$this->pipeline->copyMutex->isLocked;
    }

    public function begin(string $sql, ?Cancellation $cancellation): void
    {
        $cancellation?->throwIfRequested();
        $this->log->log('Beginning a transaction', $sql);
        $this->settleStatements();
        // No Sync follows, so that the server skips the next statement if BEGIN fails.
        $this->pipeline->begin = FrontendMessages::parse('', $sql)
            . implode('', FrontendMessages::bind("\0\0\0\0", [], "\0\0"))
            . FrontendMessages::EXECUTE;
    }

    public function discardUnsentBegin(): bool
    {
        $isUnsent = $this->pipeline->begin !== '';
        $this->pipeline->begin = '';

        return $isUnsent;
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
        $exchange = new Exchange();
        $exchange->executes = false;
        $this->pipeline->submit($exchange, [FrontendMessages::SYNC], $cancellation);
        $this->pipeline->await($exchange, $cancellation);
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
        if ($this->pipeline->conversation->status !== 'I') {
            $this->query('ROLLBACK');
        }
        if ($this->changes->hasChanges()) {
            $this->runScript($this->changes->undo(), $this->changes->mayHaveChangedMeaning(), null);
            if ($this->changes->mayHaveChangedPrepared()) {
                $this->statements->forgetAll();
            }
            $this->changes->clear();
        }
    }

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

    public function onNotification(?\Closure $listener): void
    {
        $this->pipeline->listen($listener);
    }

    public function pause(bool $on): void
    {
        $this->pipeline->pause($on);
    }

    public function onClose(\Closure $callback): void
    {
        $this->pipeline->onClose($callback);
    }

    public function close(): void
    {
        $this->pipeline->end(null);
    }

    private static function rows(Exchange $exchange, ?Columns $columns): Result
    {
        if ($exchange->refusal !== null) {
            throw $exchange->refusal;
        }
        if ($exchange->suspended || $exchange->rows > 0 && $columns === null) {
            throw ProtocolException::malformed(
                $exchange->suspended
                    ? 'the server held back rows that the client had requested'
                    : 'the server sent rows for a statement without columns',
            );
        }

        return new Result($columns, $exchange, $exchange->rows, $exchange->affected());
    }

    /** @param list<mixed> $parameters */
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
            $onSent = $this->onSent($sql, $statement === null || $statement->changesSession);
            if ($statement === null && self::needsTypes($parameters)) {
                $statement = $this->prepare($sql, $cancellation);
            }
            if (($statement === null || $statement->changesSession) && SessionChanges::mayChangeSession($sql)) {
                $this->changes->record($sql);
            }
            if ($statement === null) {
                $name = $this->statements->name($sql);
                $exchange = $this->preparation->execute($name, $sql, $parameters, $cancellation, $onSent);
                $statement = $exchange->parameters === null
                    ? null
                    : $this->preparation->register($name, $sql, $exchange, $cancellation);
            } else {
                $exchange = $this->execute($sql, $statement, $parameters, $cancellation, $onSent);
                if ($exchange === null) {
                    --$attempt; // no attempt has failed

                    continue;
                }
            }
            $this->lastQueryNanoseconds = $exchange->nanoseconds;
            $exchange->nanoseconds = hrtime(true) - $startedAt; // a log needs the time that the caller waited
            $this->tag = $exchange->tag;
            if ($exchange->tag === 'ROLLBACK') {
                // A COMMIT that the server turned into a rollback has this tag too.
                $this->closeStatements($this->statements->rollBack());
            }
            $this->settleStatements();
            if (\in_array($exchange->tag, ['DEALLOCATE', 'DEALLOCATE ALL', 'DISCARD ALL'], true)) {
                $this->statements->forgetAll();
            }
            if ($exchange->error === null && $exchange->copy === '') {
                $this->log->logOutcome("Done: {$exchange->tag}, {$exchange->rows} rows", $sql, $exchange->nanoseconds);

                return self::rows($exchange, $statement?->columns);
            }
            $this->ensureAgain($sql, $statement->parameters ?? [], $parameters, $exchange, $attempt);
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
     * Submits a prepared statement for execution. While the exchange waits, other fibers may close the statement or
     * change what its text means. Then only a Sync is sent, because an error would fail the transaction.
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
        $isAlone = ($exchange->mustNotRepeat || $pipeline->begin !== '') && $pipeline->conversation->exchanges !== [];
        if (!$isAlone && !$pipeline->cancelling->unsettled && !$pipeline->copyMutex->isLocked) {
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

    /** Waits for an exchange that executes at most a BEGIN. */
    private function awaitBegin(#[\SensitiveParameter] Exchange $exchange, ?Cancellation $cancellation): void
    {
        $this->pipeline->await($exchange, $cancellation);
        if ($exchange->error !== null) {
            throw QueryException::of($exchange->error, 'BEGIN');
        }
    }

    /**
     * Returns what to do when a statement was sent that may begin a generation or undo changes.
     *
     * @param bool $mayChange false if the statement is known not to change what statements mean
     *
     * @return (\Closure(Exchange): void)|null
     */
    private function onSent(string $sql, bool $mayChange): ?\Closure
    {
        if ($mayChange && SessionChanges::mayChangeMeaning($sql)) {
            return $this->startGeneration(...);
        }

        return SessionChanges::controlsTransaction($sql) ? fn() => $this->controlsTransaction($sql) : null;
    }

    /** Handles a statement that may undo changes of the open transaction. */
    private function controlsTransaction(string $sql): void
    {
        if ($this->statements->unsettled && $this->meaningChange !== null) {
            $this->endGeneration();
        } elseif ($this->statements->unsettled && SessionChanges::rollsBack($sql)) {
            $this->closeStatements($this->statements->rollBack());
        }
    }

    /** Begins a generation. The statement that causes it belongs to the previous one, because it was parsed before. */
    private function startGeneration(#[\SensitiveParameter] Exchange $exchange): void
    {
        $exchange->generation = $this->statements->generation;
        $this->meaningChange = $exchange;
        $this->statements->unsettled = true;
        $this->endGeneration();
    }

    private function endGeneration(): void
    {
        $this->closeStatements($this->statements->endGeneration());
    }

    /** @param list<string> $names */
    private function closeStatements(array $names): void
    {
        array_map($this->preparation->close(...), $names);
    }

    /** Keeps statements that were prepared in a finished transaction, because no rollback can affect them any more. */
    private function settleStatements(): void
    {
        if (
            $this->statements->unsettled
            && $this->pipeline->conversation->status === 'I'
            && ($this->meaningChange === null || $this->meaningChange->done)
        ) {
            $this->meaningChange = null;
            $this->statements->settle();
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
            // The server would read the messages behind a COPY as its data.
            throw new \LogicException('A COPY needs copyFrom() or copyTo()');
        }
        if (!array_is_list($parameters)) {
            throw new \LogicException('Parameters must be a list, in which $1 is the first value');
        }
        if (\count($parameters) > FrontendMessages::MAX_PARAMETERS) {
            throw InvalidParameterException::count(\count($parameters), FrontendMessages::MAX_PARAMETERS);
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

    private function prepare(string $sql, ?Cancellation $cancellation): PreparedStatement
    {
        for ($attempt = 1;; ++$attempt) {
            $name = $this->statements->name($sql);
            $exchange = $this->preparation->prepare($name, $sql, $cancellation);
            if ($exchange->error === null) {
                $statement = $this->preparation->register($name, $sql, $exchange, $cancellation);
                if ($exchange->generation === $this->statements->generation) {
                    return $statement;
                }
                continue;
            }
            $this->ensureAgain($sql, [], [], $exchange, $attempt);
        }
    }

    /**
     * Throws the failure, unless the statement had no effect and may be sent again.
     *
     * @param list<int> $types types of the parameters, as far as they are known
     * @param list<mixed> $parameters
     */
    private function ensureAgain(
        string $sql,
        array $types,
        #[\SensitiveParameter]
        array $parameters,
        #[\SensitiveParameter]
        Exchange $exchange,
        int $attempt,
    ): void {
        $error = $exchange->error;
        if ($error === null) {
            throw new \LogicException(
                $exchange->copy === 'G'
                    ? 'A COPY … FROM STDIN needs copyFrom()'
                    : 'A COPY … TO STDOUT needs copyTo()',
            );
        }
        if ($exchange->copy === 'G') {
            throw new \LogicException('A COPY … FROM STDIN needs copyFrom()');
        }
        if ($exchange->parameters !== null && \count($exchange->parameters) !== \count($parameters)) {
            throw InvalidParameterException::count(\count($parameters), \count($exchange->parameters));
        }
        $this->log->logOutcome("Failed with SQLSTATE {$error->sqlState()}", $sql, $exchange->nanoseconds);
        $types = $exchange->parameters ?? $types;
        $isStale = $this->forgetStale($sql, $exchange, $attempt) && $attempt <= self::MAX_RETRIES;
        // No limit applies if a cancel request for another statement, or one of postpone(), stopped this statement.
        $isUndone = $exchange->isStoppedByMistake && (!$exchange->executes || SqlText::isRepeatable($sql));
        if (!($isStale || $isUndone) || $exchange->status !== 'I') {
            throw $this->exception($sql, $error, $types, $parameters);
        }
    }

    /** @return bool true when the statement was not executed because the prepared one is out of date */
    private function forgetStale(string $sql, #[\SensitiveParameter] Exchange $exchange, int $attempt): bool
    {
        // An error after Bind was raised by something that the statement executes.
        if ($exchange->error === null || $exchange->bound || !$exchange->error->isStale()) {
            return false;
        }
        $isOfAnother = $exchange->error->concernsStatementName();
        $isOfAnother ? $this->statements->forgetAll() : $this->statements->forget($sql);
        if ($attempt > 1 && $isOfAnother) {
            $this->statements->disable();
        }

        return true;
    }

    /**
     * @param list<int> $types types of the parameters, as far as they are known
     * @param array<mixed> $parameters
     */
    private function exception(
        string $sql,
        #[\SensitiveParameter]
        ServerError $error,
        array $types,
        #[\SensitiveParameter]
        array $parameters,
    ): QueryException|MultipleStatementsException {
        $error = $error->hidingValues(QuotedValues::of(
            $this->preparation->types,
            $types,
            $parameters,
            $error->field('M') ?? '',
        ));
        $second = $error->sqlState() === '42601' && str_contains((string) $error->field('R'), 'exec_parse_message')
            ? SqlText::secondStatement($sql)
            : null;

        return $second === null ? QueryException::of($error, $sql) : MultipleStatementsException::in(...$second);
    }
}

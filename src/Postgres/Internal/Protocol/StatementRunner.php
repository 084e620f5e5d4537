<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Protocol;

use Amp\Cancellation;
use Spindle\Postgres\Internal\CallerTrace;
use Spindle\Postgres\Internal\SessionChanges;
use Spindle\Postgres\Internal\SqlText;
use Spindle\Postgres\Internal\StatementLog;
use Spindle\Postgres\Internal\TransactionEndDetector;
use Spindle\Postgres\InvalidParameterException;
use Spindle\Postgres\QueryException;
use Spindle\Postgres\Result;

/**
 * Executes scripts, and the statements that {@see PipelinedSession::send()} can't send immediately. Prepares these
 * statements, waits until they may be sent, and repeats them as often as {@see StatementFailures} permits.
 */
final class StatementRunner
{
    /** Nanoseconds that the server took for the last query of the session; negative when unknown. */
    public int $lastQueryNanoseconds = 0;

    public string $tag = '';

    public function __construct(
        private readonly Pipeline $pipeline,
        private readonly PreparedStatements $statements,
        private readonly Preparation $preparation,
        private readonly StatementFailures $failures,
        private readonly SessionChanges $changes,
        private readonly StatementLog $log,
    ) {}

    /**
     * @param array<mixed> $parameters
     *
     * @throws \LogicException|InvalidParameterException when the statement can't be sent
     */
    public static function check(string $sql, #[\SensitiveParameter] array $parameters): void
    {
        SqlText::ensureNoNul($sql);
        if (SqlText::isCopy($sql)) {
            // The server would read the next messages as data of the COPY.
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
    public function query(
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
            if ($statement === null && ($this->needsTypes($parameters) || SessionChanges::mayCreateTable($sql))) {
                $statement = $this->prepare($sql, $cancellation);
            }
            $onSent = $this->preparation->onSent($sql, $statement === null || $statement->changesSession);
            if (($statement === null || $statement->changesSession) && SessionChanges::mayChangeSession($sql)) {
                $this->changes->record($sql);
            }
            if ($statement === null) {
                $name = $this->preparation->newName($sql);
                $exchange = $this->preparation->execute($name, $sql, $parameters, $cancellation, $onSent);
            } else {
                $values = $this->encode($sql, $statement, $parameters, $cancellation);
                $name = $statement->name;
                $exchange = $this->execute($sql, $statement, $values, $cancellation, $onSent);
                if ($exchange === null) {
                    --$attempt; // the statement was not sent, so this does not count as an attempt

                    continue;
                }
            }
            if ($exchange->parameterTypes !== null) {
                $statement = $this->preparation->register($name, $sql, $exchange, $cancellation);
            }
            $this->lastQueryNanoseconds = $exchange->nanoseconds;
            $exchange->nanoseconds = hrtime(true) - $startedAt; // the log shows the caller's wait for this attempt
            $this->tag = $exchange->tag;
            $this->preparation->onCompleted($exchange->tag, $sql, $statement?->columns !== null);
            if ($exchange->serverError === null && $exchange->copyResponse === '') {
                $outcome = $exchange->tag === '' ? ($exchange->rows->count ?? 0) . ' rows' : $exchange->tag;
                $this->log->logOutcome("Done: {$outcome}", $sql, $exchange->nanoseconds);

                return $exchange->result($statement?->columns);
            }
            $types = $statement->parameterTypes ?? [];
            $this->throwUnlessRetryable($sql, $types, $parameters, $exchange, $attempt);
        }
    }

    /**
     * Throws the failure, unless {@see StatementFailures} permits a retry, or the parameter types were out of date.
     *
     * @param list<int> $types OIDs of the parameters' types; empty while they are unknown
     * @param list<mixed> $parameters
     */
    public function throwUnlessRetryable(
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

    /** Executes several statements as one simple query. If `$mayChangeMeaning` is true, starts a generation. */
    public function script(
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
        $exchange->discarded = true; // no caller gets the rows of a script
        $exchange->endDetector = $endDetector;
        if ($mayChangeMeaning) {
            $exchange->onSent = fn(#[\SensitiveParameter] Exchange $sent)
                => $this->preparation->onMeaningChange($sent, $sql);
        }
        $this->pipeline->submit($exchange, [FrontendMessages::query($sql)], $cancellation);
        $this->pipeline->await($exchange, $cancellation);
        while (!$exchange->done) {
            // The script contains a COPY … FROM STDIN, for which there are no data.
            if ($exchange->copyResponse === BackendMessages::COPY_IN_RESPONSE) {
                $this->pipeline->write(FrontendMessages::copyFail('a script has no data'));
                // While copyResponse is set, each write resumes this fiber, which would then send CopyFail again.
                $exchange->copyResponse = '';
            }
            $this->pipeline->await($exchange, $cancellation);
        }
        if ($exchange->waitFailure !== null) {
            throw CallerTrace::of($exchange->waitFailure);
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

    /**
     * Prepares a statement. Repeats the preparation if another generation has started in the meantime.
     *
     * @param bool $isKept false for a statement that does not stay prepared
     */
    public function prepare(string $sql, ?Cancellation $cancellation, bool $isKept = true): PreparedStatement
    {
        for ($attempt = 1;; ++$attempt) {
            $name = $isKept ? $this->preparation->newName($sql) : '';
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
     * Returns the encoded values. Encoding may call code of a parameter, such as __toString(), and this code may start
     * a generation, or remove the statement from the cache. In this case, prepares the statement again, and replaces
     * `$statement`. Does so only once and without a name, because each encoding may have this effect again.
     *
     * @param list<mixed> $parameters
     *
     * @return list<string|null>
     */
    public function encode(
        string $sql,
        PreparedStatement &$statement,
        #[\SensitiveParameter]
        array $parameters,
        ?Cancellation $cancellation,
    ): array {
        $generation = $this->statements->generation;
        $values = $statement->encode($parameters);
        $isKept = $statement->name === '' || $this->statements->find($sql) === $statement;
        if ($isKept && $generation === $this->statements->generation) {
            return $values;
        }
        $statement = $this->prepare($sql, $cancellation, isKept: false);

        return $statement->encode($parameters);
    }

    /**
     * Submits a prepared statement for execution. While the exchange waits to be sent, other fibers may close the
     * statement or change the meaning of its text. Such a statement could use other tables, or raise an error that
     * fails the transaction. In that case, the session sends a Sync instead.
     *
     * @param non-empty-list<string> $parts
     *
     * @return bool false when nothing was executed, and the statement has to be prepared again
     */
    public function submit(
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

    /**
     * Sends a pending BEGIN with its own Sync, and waits for the answer. Without that Sync, the server would skip a
     * simple query after a failed BEGIN and never answer it.
     */
    public function sendBegin(?Cancellation $cancellation): void
    {
        if ($this->pipeline->pendingBegin !== '') {
            $exchange = new Exchange();
            $exchange->executes = false;
            $this->pipeline->submit($exchange, [FrontendMessages::SYNC], $cancellation);
            $this->awaitBegin($exchange, $cancellation);
        }
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
     * @param list<string|null> $values
     * @param (\Closure(Exchange): void)|null $onSent
     *
     * @return Exchange|null null when the statement has to be prepared again: {@see submit()}
     */
    private function execute(
        string $sql,
        PreparedStatement $statement,
        #[\SensitiveParameter]
        array $values,
        ?Cancellation $cancellation,
        ?\Closure $onSent,
    ): ?Exchange {
        $this->log->log("Executing {$statement->name}", $sql);
        $exchange = new Exchange();
        $exchange->binary = $statement->name !== '';
        $exchange->mustNotRepeat = $statement->mustNotRepeat;
        $exchange->onSent = $onSent;
        $parts = [
            $statement->preparation($sql),
            ...$statement->bind($values),
            FrontendMessages::EXECUTE . FrontendMessages::SYNC,
        ];
        if (!$this->submit($exchange, $sql, $statement, $parts, $cancellation)) {
            return null;
        }
        $this->pipeline->await($exchange, $cancellation);

        return $exchange;
    }

    /** @param list<mixed> $parameters */
    private function needsTypes(#[\SensitiveParameter] array $parameters): bool
    {
        foreach ($parameters as $value) {
            if ($this->preparation->types->needsType($value)) {
                return true;
            }
        }

        return false;
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Protocol;

use Spindle\Postgres\Internal\ServerError;
use Spindle\Postgres\Internal\SqlText;
use Spindle\Postgres\Internal\StatementLog;
use Spindle\Postgres\Internal\Types\QuotedValues;
use Spindle\Postgres\Internal\Types\Types;
use Spindle\Postgres\InvalidParameterException;
use Spindle\Postgres\MultipleStatementsException;
use Spindle\Postgres\QueryException;

/** Decides whether a failed statement is sent again. If it is not, creates the exception for the caller. */
final class StatementFailures
{
    /** Maximum number of times that a statement is sent again because its prepared statement was out of date. */
    private const MAX_RETRIES = 3;

    public function __construct(
        private readonly PreparedStatements $statements,
        private readonly Types $types,
        private readonly StatementLog $log,
        private readonly Conversation $conversation,
    ) {}

    /**
     * Throws the failure, unless the statement had no effect and may be sent again.
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
        if ($exchange->copyResponse === BackendMessages::COPY_IN_RESPONSE) {
            throw new \LogicException('A COPY … FROM STDIN needs copyFrom()');
        }
        $error = $exchange->serverError ?? throw new \LogicException('A COPY … TO STDOUT needs copyTo()');
        if ($exchange->parameterTypes !== null && \count($exchange->parameterTypes) !== \count($parameters)) {
            throw InvalidParameterException::count(\count($parameters), \count($exchange->parameterTypes));
        }
        $this->log->logOutcome("Failed with SQLSTATE {$error->sqlState()}", $sql, $exchange->nanoseconds);
        $types = $exchange->parameterTypes ?? $types;
        $isStale = $this->statements->forgetStale($sql, $exchange, $attempt) && $attempt <= self::MAX_RETRIES;
        // A cancel request for another statement or from PipelinedSession::postpone() may have stopped this statement.
        // The number of retries after such a stop is not limited.
        $isUndone = $exchange->isStoppedByMistake && (!$exchange->executes || SqlText::isRepeatable($sql));
        if (!($isStale || $isUndone) || $exchange->status !== 'I') {
            throw $this->exception($sql, $error, $types, $parameters);
        }
    }

    /**
     * Returns the exception for a server error. The exception's message does not show parameter values.
     *
     * @param list<int> $types OIDs of the parameters' types; empty while they are unknown
     * @param array<mixed> $parameters
     */
    public function exception(
        string $sql,
        #[\SensitiveParameter]
        ServerError $error,
        array $types,
        #[\SensitiveParameter]
        array $parameters,
    ): QueryException|MultipleStatementsException {
        $quoted = QuotedValues::of($this->types, $types, $parameters, $error->field('M') ?? '');
        $error = $error->hidingValues($quoted);
        $isRefusedScript = $error->sqlState() === '42601'
            && str_contains((string) $error->field('R'), 'exec_parse_message');

        return ($isRefusedScript
            ? MultipleStatementsException::of($sql, $this->conversation->escapesWithBackslash)
            : null) ?? QueryException::of($error, $sql);
    }
}

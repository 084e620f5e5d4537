<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pgsql;

use Amp\Cancellation;
use PgSql\Connection;
use PgSql\Result;
use Spindle\Postgres\Internal\Columns;
use Spindle\Postgres\Internal\ServerError;
use Spindle\Postgres\Internal\SessionChanges;
use Spindle\Postgres\Internal\SqlText;
use Spindle\Postgres\Internal\StatementLog;
use Spindle\Postgres\Internal\Types\QuotedValues;
use Spindle\Postgres\Internal\Types\Types;
use Spindle\Postgres\InvalidParameterException;
use Spindle\Postgres\MultipleStatementsException;
use Spindle\Postgres\QueryException;

/** Prepares statements, and queries the types of parameters and columns. The caller must hold the session's lock. */
final class PgsqlPreparation
{
    /** How many times to resend a statement that the server did not execute. */
    private const MAX_RETRIES = 3;

    /** Maximum number of parameters, because their number in the protocol is a 16-bit integer. */
    private const MAX_PARAMETERS = 0xFFFF;

    /** Name of a statement that is prepared only to query the types of its parameters. */
    private const TYPES_STATEMENT = 'spindle_types';

    /** Query for the types of a statement's parameters. For a statement without parameters, it returns one NULL. */
    private const PARAMETER_TYPES_QUERY = <<<'SQL'
        SELECT t.oid FROM pg_catalog.pg_prepared_statements s
        LEFT JOIN LATERAL
            pg_catalog.unnest(s.parameter_types::pg_catalog.oid[]) WITH ORDINALITY t (oid, position) ON true
        WHERE s.name = $1 ORDER BY t.position
        SQL;

    /** Whether {@see parameterTypesWithoutCaching()} may have been interrupted with its transaction open. */
    private bool $mayHaveOpenTransaction = false;

    /** Whether some statements may become out of date when the open transaction ends. */
    public bool $mayBecomeStale = false;

    /** Whether the open transaction may have changed the meaning of SQL texts; a rollback would undo the change. */
    private bool $isMeaningChanged = false;

    public function __construct(
        private readonly PgsqlHandle $handle,
        private readonly PgsqlStatements $statements,
        public readonly Types $types,
        private readonly StatementLog $log,
    ) {}

    /**
     * Returns a statement to be executed with these values. A statement without parameters is prepared only when it is
     * used a second time. So its first use, which is often the only one, needs one round trip instead of two.
     *
     * @param array<mixed> $parameters
     *
     * @throws QueryException|MultipleStatementsException
     * @throws \LogicException|InvalidParameterException when the statement can't be sent
     */
    public function statement(
        string $sql,
        #[\SensitiveParameter]
        array $parameters,
        ?Cancellation $cancellation,
    ): PgsqlStatement {
        if (!str_contains($sql, '$') && $this->statements->canCache($sql) && $this->statements->find($sql) === null) {
            $this->dropLeastRecentlyUsed();

            return $this->add($sql, new PgsqlStatement('', self::mayChangeSessionOrMeaning($sql), []));
        }

        return $this->prepared($sql, $parameters, $cancellation);
    }

    /**
     * Returns a statement to be executed with these values. Prepares it, if statements may be cached.
     *
     * @param array<mixed> $parameters
     *
     * @throws QueryException|MultipleStatementsException
     * @throws \LogicException|InvalidParameterException when the statement can't be sent
     */
    public function prepared(
        string $sql,
        #[\SensitiveParameter]
        array $parameters,
        ?Cancellation $cancellation,
    ): PgsqlStatement {
        if (!array_is_list($parameters)) {
            throw new \LogicException('Parameters must be a list, in which $1 is the first value');
        }
        if (\count($parameters) > self::MAX_PARAMETERS) {
            throw InvalidParameterException::tooMany(\count($parameters), self::MAX_PARAMETERS);
        }
        $statement = $this->statements->find($sql);
        if ($statement === null || $statement->name === '') {
            $statement = $this->prepare($sql, $cancellation);
        }
        if ($statement->parameterTypes !== null) {
            return $statement;
        }
        if ($statement->name !== '') {
            $types = $this->parameterTypes($statement->name, $cancellation);
            if ($types === null) {
                // The statement is unknown, because a pooler switched to another server session after preparing it.
                $this->statements->disable();

                return $this->prepared($sql, $parameters, $cancellation);
            }
        } elseif (array_filter($parameters, Types::needsType(...)) !== []) {
            $types = $this->parameterTypesWithoutCaching($sql, $cancellation);
        } else {
            return $statement;
        }
        $this->learnTypes($types, $cancellation);
        $statement->parameterTypes = $types;

        return $statement;
    }

    /** Returns the columns of a result. Queries types that are unknown, unless the transaction has failed. */
    public function columns(Result $result, ?Cancellation $cancellation): Columns
    {
        $columns = $this->columnsWithoutQuery($result);
        $this->learnTypes($columns->oids, $cancellation);

        return $columns;
    }

    /** Returns the columns of an executed statement. If unknown types can't be queried, their values are strings. */
    public function columnsOfExecuted(Result $result, ?Cancellation $cancellation): Columns
    {
        try {
            return $this->columns($result, $cancellation);
        } catch (QueryException $failure) {
            // In a transaction, the failed query for the types has undone the statement.
            return $this->handle->status === 'I' ? $this->columnsWithoutQuery($result) : throw $failure;
        }
    }

    /**
     * Throws the failure, unless the server did not execute the statement, so that it may be sent again.
     *
     * @param list<int> $types OIDs of the parameters' types; empty while they are unknown
     * @param array<mixed> $parameters
     */
    public function throwUnlessRetryable(
        string $sql,
        array $types,
        #[\SensitiveParameter]
        array $parameters,
        #[\SensitiveParameter]
        Call $call,
        int $attempt,
    ): void {
        if ($call->copyResponse !== '') {
            $this->handle->abandon($call, null);
            throw new \LogicException(
                $call->copyResponse === Call::COPY_IN_RESPONSE
                    ? 'A COPY … FROM STDIN needs copyFrom()'
                    : 'A COPY … TO STDOUT needs copyTo()',
            );
        }
        $error = $call->serverError ?? throw Libpq::noResult();
        $this->log->logOutcome("Failed with SQLSTATE {$error->sqlState()}", $sql, $call->nanoseconds);
        $concernsStatementName = $error->concernsStatementName();
        $isStale = $error->isStale()
            && (
                $concernsStatementName
                    ? $this->statements->areNamedIn($error->field('M') ?? '')
                    : SqlText::isRepeatable($sql) || $error->field('W') === null
            );
        if ($isStale) {
            $concernsStatementName ? $this->statements->forgetAll() : $this->statements->forget($sql);
            if ($attempt > 1 && $concernsStatementName) {
                $this->statements->disable();
            }
        }
        if (!$isStale || $this->handle->status !== 'I' || $attempt > self::MAX_RETRIES) {
            throw $this->exception($sql, $types, $parameters, $error);
        }
    }

    /** Whether {@see cleanUp()} has nothing to do. */
    public function isClean(): bool
    {
        return !$this->mayHaveOpenTransaction && !$this->statements->needDeallocation();
    }

    /** Rolls back a transaction that an interruption left open. If none is open, deallocates dropped statements. */
    public function cleanUp(): void
    {
        if ($this->mayHaveOpenTransaction && $this->handle->status !== 'I') {
            $this->handle->runIgnoringErrors('ROLLBACK', null);
        }
        $this->mayHaveOpenTransaction = false;
        $this->deallocate();
    }

    public function forgetAll(): void
    {
        $this->statements->forgetAll();
    }

    /** Drops the prepared statements. Call this before a statement is sent that may change the meaning of SQL texts. */
    public function startGeneration(): void
    {
        $this->isMeaningChanged = $this->mayBecomeStale = true;
        $this->statements->startGeneration();
    }

    /**
     * Drops statements that became out of date when a statement ended the transaction or rolled back to a savepoint.
     *
     * @param string $tag command tag of a completed statement; '' to check only whether a transaction is open
     */
    public function statementCompleted(string $tag): void
    {
        $isRolledBack = $tag === 'ROLLBACK';
        $isTransactionOver = $this->handle->status === 'I';
        if ($isRolledBack) {
            $this->statements->forgetTentative();
        }
        if ($this->isMeaningChanged && ($isRolledBack || $isTransactionOver)) {
            $this->statements->startGeneration();
        }
        if ($isTransactionOver) {
            $this->isMeaningChanged = $this->mayBecomeStale = false;
            $this->statements->keepTentative();
        }
    }

    /** Whether the statement may change the session or the meaning of SQL texts. */
    private static function mayChangeSessionOrMeaning(string $sql): bool
    {
        return SessionChanges::mayChangeSession($sql) || SessionChanges::mayChangeMeaning($sql);
    }

    private function add(string $sql, PgsqlStatement $statement): PgsqlStatement
    {
        $isTentative = $this->handle->status !== 'I';
        $this->mayBecomeStale = $this->mayBecomeStale || $isTentative;

        return $this->statements->add($sql, $statement, $isTentative);
    }

    /** Prepares a statement that may be cached. For any other, returns a statement without a name. */
    private function prepare(string $sql, ?Cancellation $cancellation): PgsqlStatement
    {
        $changesSession = self::mayChangeSessionOrMeaning($sql);
        $parameters = str_contains($sql, '$') ? null : [];
        $this->dropLeastRecentlyUsed();
        for ($attempt = 1; $this->statements->canCache($sql); ++$attempt) {
            $name = $this->statements->newName();
            $call = $this->sendPrepare($name, $sql, $cancellation);
            if ($call->serverError === null) {
                return $this->add($sql, new PgsqlStatement($name, $changesSession, $parameters));
            }
            $this->throwUnlessRetryable($sql, [], [], $call, $attempt);
        }

        return new PgsqlStatement('', $changesSession, $parameters);
    }

    /** Drops statements if the cache is full, and deallocates them. Call this before a statement is added. */
    private function dropLeastRecentlyUsed(): void
    {
        $this->statements->dropLeastRecentlyUsed();
        $this->deallocate();
    }

    private function deallocate(): void
    {
        // An error of DEALLOCATE would abort an open transaction.
        if ($this->handle->status === 'I' && $this->statements->needDeallocation()) {
            $this->handle->runIgnoringErrors($this->statements->takeDeallocationScript(), null);
        }
    }

    private function sendPrepare(string $name, string $sql, ?Cancellation $cancellation): Call
    {
        $this->log->log("Preparing {$name}", $sql);

        return $this->handle->call(
            $cancellation,
            static fn(Connection $connection): bool|int => pg_send_prepare($connection, $name, $sql),
            // If the call was cancelled too late, the server has prepared the statement and has to deallocate it.
            fn(Call $call) => $call->serverError === null ? $this->statements->deallocateLater($name) : null,
        );
    }

    /** @return list<int>|null OIDs; null if the server does not know the statement */
    private function parameterTypes(string $name, ?Cancellation $cancellation): ?array
    {
        $rows = $this->handle->fetchRows(self::PARAMETER_TYPES_QUERY, [$name], $cancellation);

        return $rows === []
            ? null
            : array_map(intval(...), array_values(array_filter(array_column($rows, 0), is_string(...))));
    }

    /**
     * Prepares a statement, queries the types of its parameters, and deallocates it. All of that happens in one
     * transaction, because a pooler keeps the same server session for a transaction.
     *
     * @return list<int> OIDs
     */
    private function parameterTypesWithoutCaching(string $sql, ?Cancellation $cancellation): array
    {
        $ownsTransaction = $this->mayHaveOpenTransaction = $this->handle->status === 'I';
        if ($ownsTransaction) {
            $this->handle->runIgnoringErrors('BEGIN', $cancellation);
        }
        $error = $this->sendPrepare(self::TYPES_STATEMENT, $sql, $cancellation)->serverError;
        $types = [];
        if ($error === null) {
            $types = $this->parameterTypes(self::TYPES_STATEMENT, $cancellation) ?? [];
            $this->handle->runIgnoringErrors('DEALLOCATE ' . self::TYPES_STATEMENT, $cancellation);
        }
        if ($ownsTransaction) {
            $this->handle->runIgnoringErrors('ROLLBACK', $cancellation);
            $this->mayHaveOpenTransaction = false;
        }

        return $error === null ? $types : throw PgsqlErrors::exception($sql, $error);
    }

    /** Returns the columns of a result without querying unknown types. */
    private function columnsWithoutQuery(Result $result): Columns
    {
        $names = $oids = [];
        for ($column = 0, $count = pg_num_fields($result); $column < $count; ++$column) {
            $names[] = pg_field_name($result, $column);
            $oids[] = (int) pg_field_type_oid($result, $column);
        }

        return new Columns($names, $oids, $this->types);
    }

    /** @param list<int> $oids unknown types are queried, unless the transaction has failed */
    private function learnTypes(array $oids, ?Cancellation $cancellation): void
    {
        $unknown = $this->types->notLoaded($oids);
        if ($unknown !== [] && $this->handle->status !== 'E') {
            $this->types->load($this->handle->fetchRows(
                Types::LOAD_QUERY,
                ['{' . implode(',', $unknown) . '}'],
                $cancellation,
            ));
        }
    }

    /**
     * Returns the exception for a server error. Its message does not show parameter values.
     *
     * @param list<int> $types OIDs of the parameters' types; empty while they are unknown
     * @param array<mixed> $parameters
     */
    public function exception(
        string $sql,
        array $types,
        #[\SensitiveParameter]
        array $parameters,
        #[\SensitiveParameter]
        ServerError $error,
    ): QueryException|MultipleStatementsException {
        return PgsqlErrors::exception(
            $sql,
            $error->hidingValues(QuotedValues::of($this->types, $types, $parameters, $error->field('M') ?? '')),
        );
    }
}

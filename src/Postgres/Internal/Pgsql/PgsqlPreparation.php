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

/** Prepares statements, and learns their types. The caller must have the session's turn. */
final class PgsqlPreparation
{
    /** How often to send a statement that the server did not execute. */
    private const MAX_RETRIES = 3;

    /** The number of parameters is a 16-bit integer. */
    private const MAX_PARAMETERS = 0xFFFF;

    /** Name of a statement that is only prepared to learn its types. */
    private const TYPES_STATEMENT = 'spindle_types';

    /** Returns the parameters' types. A row without a type means that the statement exists and has no parameters. */
    private const PARAMETER_TYPES_QUERY = <<<'SQL'
        SELECT t.oid FROM pg_catalog.pg_prepared_statements s
        LEFT JOIN LATERAL
            pg_catalog.unnest(s.parameter_types::pg_catalog.oid[]) WITH ORDINALITY t (oid, position) ON true
        WHERE s.name = $1 ORDER BY t.position
        SQL;

    /** Whether an interrupted {@see typesOnce()} may have left a transaction open. */
    private bool $mayHaveOpenTransaction = false;

    /** Whether the end of the transaction may make some statements out of date. */
    public bool $unsettled = false;

    /** Whether the open transaction changed what statements mean: its end may undo that. */
    private bool $isMeaningChanged = false;

    public function __construct(
        private readonly PgsqlHandle $handle,
        private readonly PgsqlStatements $statements,
        public readonly Types $types,
        private readonly StatementLog $log,
    ) {}

    /**
     * Returns a statement that can be executed with these values. One without parameters is not prepared before its
     * second use. The first may be the only one, and then needs one round trip.
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
        if (!str_contains($sql, '$') && $this->statements->keeps($sql) && $this->statements->find($sql) === null) {
            $this->makeRoom();

            return $this->add($sql, new PgsqlStatement('', self::changes($sql), []));
        }

        return $this->prepared($sql, $parameters, $cancellation);
    }

    /**
     * Returns a statement that can be executed with these values, always prepared.
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
            throw InvalidParameterException::count(\count($parameters), self::MAX_PARAMETERS);
        }
        $statement = $this->statements->find($sql);
        if ($statement === null || $statement->name === '') {
            $statement = $this->prepare($sql, $cancellation);
        }
        if ($statement->parameters !== null) {
            return $statement;
        }
        if ($statement->name !== '') {
            $types = $this->parameterTypes($statement->name, $cancellation);
            if ($types === null) {
                // A pooler used different server sessions for preparing and for this query.
                $this->statements->disable();

                return $this->prepared($sql, $parameters, $cancellation);
            }
        } elseif (array_filter($parameters, Types::needsType(...)) !== []) {
            $types = $this->typesOnce($sql, $cancellation);
        } else {
            return $statement;
        }
        $this->learnTypes($types, $cancellation);
        $statement->parameters = $types;

        return $statement;
    }

    /** Returns a result's columns, after their types were learnt. */
    public function columns(Result $result, ?Cancellation $cancellation): Columns
    {
        $columns = $this->columnsAsKnown($result);
        $this->learnTypes($columns->oids, $cancellation);

        return $columns;
    }

    /** Returns the columns of an executed statement. If their types can't be learnt, the values are text. */
    public function columnsOfWhatIsDone(Result $result, ?Cancellation $cancellation): Columns
    {
        try {
            return $this->columns($result, $cancellation);
        } catch (QueryException $failure) {
            // In a transaction the failure undoes the statement.
            return $this->handle->status === 'I' ? $this->columnsAsKnown($result) : throw $failure;
        }
    }

    /**
     * Throws the failure, unless the statement was not executed at all and may be sent again.
     *
     * @param array<mixed> $parameters
     * @param list<int> $types types of the parameters, as far as they are known
     */
    public function ensureAgain(
        string $sql,
        array $types,
        #[\SensitiveParameter]
        array $parameters,
        #[\SensitiveParameter]
        Call $call,
        int $attempt,
    ): void {
        if ($call->copy !== '') {
            $this->handle->abandon($call, null);
            throw new \LogicException(
                $call->copy === 'G' ? 'A COPY … FROM STDIN needs copyFrom()' : 'A COPY … TO STDOUT needs copyTo()',
            );
        }
        $error = $call->error ?? throw Libpq::noResult();
        $this->log->logOutcome("Failed with SQLSTATE {$error->sqlState()}", $sql, $call->nanoseconds);
        $isOfAnother = $error->concernsStatementName();
        $isStale = $error->isStale()
            && (
                $isOfAnother ? $this->statements->areNamedIn($error->field('M') ?? '') : SqlText::isRepeatable($sql)
                || $error->field('W') === null
            );
        if ($isStale) {
            $isOfAnother ? $this->statements->forgetAll() : $this->statements->forget($sql);
            if ($attempt > 1 && $isOfAnother) {
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
        return !$this->mayHaveOpenTransaction && !$this->statements->areGone();
    }

    /** Cleans up after abandoned calls, as far as that is possible now. */
    public function cleanUp(): void
    {
        if ($this->mayHaveOpenTransaction && $this->handle->status !== 'I') {
            $this->handle->command('ROLLBACK', null);
        }
        $this->mayHaveOpenTransaction = false;
        $this->deallocate();
    }

    public function forgetAll(): void
    {
        $this->statements->forgetAll();
    }

    /** Forgets the prepared statements, before a statement is sent after which texts may mean something else. */
    public function startGeneration(): void
    {
        $this->isMeaningChanged = $this->unsettled = true;
        $this->statements->endGeneration();
    }

    /** @param string $tag tag of a completed statement */
    public function settle(string $tag): void
    {
        $isRolledBack = $tag === 'ROLLBACK';
        $isOver = $this->handle->status === 'I';
        if ($isRolledBack) {
            $this->statements->rollBack();
        }
        if ($this->isMeaningChanged && ($isRolledBack || $isOver)) {
            $this->statements->endGeneration();
        }
        if ($isOver) {
            $this->isMeaningChanged = $this->unsettled = false;
            $this->statements->settle();
        }
    }

    private static function changes(string $sql): bool
    {
        return SessionChanges::mayChangeSession($sql) || SessionChanges::mayChangeMeaning($sql);
    }

    private function add(string $sql, PgsqlStatement $statement): PgsqlStatement
    {
        $isTentative = $this->handle->status !== 'I';
        $this->unsettled = $this->unsettled || $isTentative;

        return $this->statements->add($sql, $statement, $isTentative);
    }

    private function prepare(string $sql, ?Cancellation $cancellation): PgsqlStatement
    {
        $changes = self::changes($sql);
        $parameters = str_contains($sql, '$') ? null : [];
        $this->makeRoom();
        for ($attempt = 1; $this->statements->keeps($sql); ++$attempt) {
            $name = $this->statements->name();
            $call = $this->sendPrepare($name, $sql, $cancellation);
            if ($call->error === null) {
                return $this->add($sql, new PgsqlStatement($name, $changes, $parameters));
            }
            $this->ensureAgain($sql, [], [], $call, $attempt);
        }

        return new PgsqlStatement('', $changes, $parameters);
    }

    private function makeRoom(): void
    {
        $this->statements->makeRoom();
        $this->deallocate();
    }

    private function deallocate(): void
    {
        // An error would abort an open transaction.
        if ($this->handle->status === 'I' && $this->statements->areGone()) {
            $this->handle->command($this->statements->deallocation(), null);
        }
    }

    private function sendPrepare(string $name, string $sql, ?Cancellation $cancellation): Call
    {
        $this->log->log("Preparing {$name}", $sql);

        return $this->handle->call(
            $cancellation,
            static fn(Connection $connection): bool|int => pg_send_prepare($connection, $name, $sql),
            // the cancel request came too late
            fn(Call $call) => $call->error === null ? $this->statements->discard($name) : null,
        );
    }

    /** @return list<int>|null null when there is no such statement */
    private function parameterTypes(string $name, ?Cancellation $cancellation): ?array
    {
        $rows = $this->handle->fetchRows(self::PARAMETER_TYPES_QUERY, [$name], $cancellation);

        return $rows === []
            ? null
            : array_map(intval(...), array_values(array_filter(array_column($rows, 0), is_string(...))));
    }

    /**
     * Returns the types of a statement without keeping it, in a transaction that a pooler gives one session.
     *
     * @return list<int>
     */
    private function typesOnce(string $sql, ?Cancellation $cancellation): array
    {
        $alone = $this->mayHaveOpenTransaction = $this->handle->status === 'I';
        if ($alone) {
            $this->handle->command('BEGIN', $cancellation);
        }
        $error = $this->sendPrepare(self::TYPES_STATEMENT, $sql, $cancellation)->error;
        $types = [];
        if ($error === null) {
            $types = $this->parameterTypes(self::TYPES_STATEMENT, $cancellation) ?? [];
            $this->handle->command('DEALLOCATE ' . self::TYPES_STATEMENT, $cancellation);
        }
        if ($alone) {
            $this->handle->command('ROLLBACK', $cancellation);
            $this->mayHaveOpenTransaction = false;
        }

        return $error === null ? $types : throw PgsqlErrors::exception($sql, $error);
    }

    private function columnsAsKnown(Result $result): Columns
    {
        $names = $oids = [];
        for ($column = 0, $count = pg_num_fields($result); $column < $count; ++$column) {
            $names[] = pg_field_name($result, $column);
            $oids[] = (int) pg_field_type_oid($result, $column);
        }

        return new Columns($names, $oids, $this->types);
    }

    /** @param list<int> $oids */
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
     * Returns the exception for an error during execution. Its message shows no values.
     *
     * @param list<int> $types types of the parameters, as far as they are known
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

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
use Spindle\Postgres\Internal\Steps;
use Spindle\Postgres\Internal\Types\QuotedValues;
use Spindle\Postgres\Internal\Types\Types;
use Spindle\Postgres\InvalidParameterException;
use Spindle\Postgres\MultipleStatementsException;
use Spindle\Postgres\QueryException;

/** Has statements prepared, and finds out what types their parameters and columns have. For whoever's turn it is. */
final class Preparation
{
    /** How often a statement is sent that the server did not execute. */
    private const TRIES = 3;

    /** Their number travels in two bytes. */
    private const MOST_PARAMETERS = 0xFFFF;

    /** What a statement is prepared as whose types alone are wanted. */
    private const NAME = 'spindle_types';

    /** A row without a type tells that there is such a statement, and that it has no parameters. */
    private const PARAMETER_TYPES = <<<'SQL'
        SELECT t.oid FROM pg_catalog.pg_prepared_statements s
        LEFT JOIN LATERAL pg_catalog.unnest(s.parameter_types::pg_catalog.oid[]) WITH ORDINALITY t (oid, position) ON true
        WHERE s.name = $1 ORDER BY t.position
        SQL;

    /** Whether a transaction may be open that nobody asked for. */
    private bool $stray = false;

    /** Whether the end of the transaction may leave some that do not fit. */
    public bool $unsettled = false;

    /** Whether what statements mean was changed in a transaction that is open: its end may undo that. */
    private bool $changing = false;

    public function __construct(
        private readonly Handle $handle,
        private readonly Statements $statements,
        public readonly Types $types,
        private readonly Steps $steps,
    ) {}

    /**
     * A statement that can be executed with these values. One without parameters is not prepared before its second time: it may be the last, and
     * it is done in one round trip.
     *
     * @param array<mixed> $parameters
     *
     * @throws QueryException|MultipleStatementsException
     * @throws \LogicException|InvalidParameterException for what can't be sent at all
     */
    public function statement(string $sql, #[\SensitiveParameter] array $parameters, ?Cancellation $cancellation): Prepared
    {
        if (!str_contains($sql, '$') && $this->statements->keepsAny() && $this->statements->find($sql) === null) {
            $this->makeRoom();

            return $this->add($sql, new Prepared('', self::changes($sql), []));
        }

        return $this->prepared($sql, $parameters, $cancellation);
    }

    /**
     * The same, prepared at once.
     *
     * @param array<mixed> $parameters
     *
     * @throws QueryException|MultipleStatementsException
     * @throws \LogicException|InvalidParameterException for what can't be sent at all
     */
    public function prepared(string $sql, #[\SensitiveParameter] array $parameters, ?Cancellation $cancellation): Prepared
    {
        if (!array_is_list($parameters)) {
            throw new \LogicException('Parameters are a list, of which $1 is the first');
        }
        if (\count($parameters) > self::MOST_PARAMETERS) {
            throw InvalidParameterException::count(\count($parameters), self::MOST_PARAMETERS);
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
                // Other servers prepare and execute than are asked.
                $this->statements->keepNone();

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

    /** Of a result's rows, once their types are known. */
    public function columns(Result $result, ?Cancellation $cancellation): Columns
    {
        $columns = $this->columnsAsKnown($result);
        $this->learnTypes($columns->oids, $cancellation);

        return $columns;
    }

    /** Of a statement that was executed, which it remains though its types can't be learnt: values of these are texts then. */
    public function columnsOfWhatIsDone(Result $result, ?Cancellation $cancellation): Columns
    {
        try {
            return $this->columns($result, $cancellation);
        } catch (QueryException $failure) {
            // In a transaction nothing remains.
            return $this->handle->status === 'I' ? $this->columnsAsKnown($result) : throw $failure;
        }
    }

    /**
     * Throws what failed, unless the statement was not executed at all and may be sent again.
     *
     * @param array<mixed> $parameters
     * @param list<int>    $types      of the parameters, as far as they are known
     */
    public function ensureAgain(string $sql, array $types, #[\SensitiveParameter] array $parameters, #[\SensitiveParameter] Call $call, int $tries): void
    {
        if ($call->copy !== '') {
            $this->handle->abandon($call, null);
            throw new \LogicException($call->copy === 'G' ? 'A COPY … FROM STDIN is for copyFrom()' : 'A COPY … TO STDOUT is for copyTo()');
        }
        $error = $call->error ?? throw Libpq::noResult();
        $this->steps->logOutcome("Failed with SQLSTATE {$error->sqlState()}", $sql, $call->took);
        $isOfAnother = $error->concernsName();
        $isStale = $error->isStale() && ($isOfAnother ? $this->statements->areNamedIn($error->field('M') ?? '') : SqlText::isRepeatable($sql) || $error->field('W') === null);
        if ($isStale) {
            $isOfAnother ? $this->statements->forgetAll() : $this->statements->forget($sql);
            if ($tries > 1 && $isOfAnother) {
                $this->statements->keepNone();
            }
        }
        if (!$isStale || $this->handle->status !== 'I' || $tries > self::TRIES) {
            throw $this->exception($sql, $types, $parameters, $error);
        }
    }

    /** Whether there is something to be done before anything else is. */
    public function isTidy(): bool
    {
        return !$this->stray && !$this->statements->areGone();
    }

    /** Of what nobody waits for, what can be done now. */
    public function tidy(): void
    {
        if ($this->stray && $this->handle->status !== 'I') {
            $this->handle->command('ROLLBACK', null);
        }
        $this->stray = false;
        $this->deallocate();
    }

    public function forgetAll(): void
    {
        $this->statements->forgetAll();
    }

    /** Before a statement after which others may mean something else is sent: those that are prepared are forgotten. */
    public function startGeneration(): void
    {
        $this->changing = $this->unsettled = true;
        $this->statements->endGeneration();
    }

    /** @param string $tag of a statement that is done */
    public function settle(string $tag): void
    {
        $isRolledBack = $tag === 'ROLLBACK';
        $isOver = $this->handle->status === 'I';
        if ($isRolledBack) {
            $this->statements->rollBack();
        }
        if ($this->changing && ($isRolledBack || $isOver)) {
            $this->statements->endGeneration();
        }
        if ($isOver) {
            $this->changing = $this->unsettled = false;
            $this->statements->settle();
        }
    }

    private static function changes(string $sql): bool
    {
        return SessionChanges::suspects($sql) || SessionChanges::changesMeaning($sql);
    }

    private function add(string $sql, Prepared $statement): Prepared
    {
        $isTentative = $this->handle->status !== 'I';
        $this->unsettled = $this->unsettled || $isTentative;

        return $this->statements->add($sql, $statement, $isTentative);
    }

    private function prepare(string $sql, ?Cancellation $cancellation): Prepared
    {
        $changes = self::changes($sql);
        $parameters = str_contains($sql, '$') ? null : [];
        $this->makeRoom();
        for ($tries = 1; $this->statements->keepsAny(); ++$tries) {
            $name = $this->statements->name();
            $call = $this->sendPrepare($name, $sql, $cancellation);
            if ($call->error === null) {
                return $this->add($sql, new Prepared($name, $changes, $parameters));
            }
            $this->ensureAgain($sql, [], [], $call, $tries);
        }

        return new Prepared('', $changes, $parameters);
    }

    private function makeRoom(): void
    {
        $this->statements->makeRoom();
        $this->deallocate();
    }

    private function deallocate(): void
    {
        // Within a transaction an error would end that.
        if ($this->handle->status === 'I' && $this->statements->areGone()) {
            $this->handle->command($this->statements->deallocation(), null);
        }
    }

    private function sendPrepare(string $name, string $sql, ?Cancellation $cancellation): Call
    {
        $this->steps->log("Preparing {$name}", $sql);

        return $this->handle->call(
            $cancellation,
            static fn(Connection $connection): bool|int => pg_send_prepare($connection, $name, $sql),
            fn(Call $call) => $call->error === null ? $this->statements->discard($name) : null, // the cancellation came too late
        );
    }

    /** @return list<int>|null null when there is no such statement */
    private function parameterTypes(string $name, ?Cancellation $cancellation): ?array
    {
        $rows = $this->handle->ask(self::PARAMETER_TYPES, [$name], $cancellation);

        return $rows === [] ? null : array_map(intval(...), array_values(array_filter(array_column($rows, 0), is_string(...))));
    }

    /**
     * Without the statement staying prepared, in a transaction, so that behind a pooler it is one server that does all of it.
     *
     * @return list<int>
     */
    private function typesOnce(string $sql, ?Cancellation $cancellation): array
    {
        $alone = $this->stray = $this->handle->status === 'I';
        if ($alone) {
            $this->handle->command('BEGIN', $cancellation);
        }
        $error = $this->sendPrepare(self::NAME, $sql, $cancellation)->error;
        $types = [];
        if ($error === null) {
            $types = $this->parameterTypes(self::NAME, $cancellation) ?? [];
            $this->handle->command('DEALLOCATE ' . self::NAME, $cancellation);
        }
        if ($alone) {
            $this->handle->command('ROLLBACK', $cancellation);
            $this->stray = false;
        }

        return $error === null ? $types : throw Errors::exception($sql, $error);
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
        $unknown = $this->types->unknown($oids);
        if ($unknown !== [] && $this->handle->status !== 'E') {
            $this->types->learn($this->handle->ask(Types::QUERY, ['{' . implode(',', $unknown) . '}'], $cancellation));
        }
    }

    /**
     * An error that came while something was executed; its message shows no values.
     *
     * @param list<int>    $types      of the parameters, as far as they are known
     * @param array<mixed> $parameters
     */
    public function exception(string $sql, array $types, #[\SensitiveParameter] array $parameters, #[\SensitiveParameter] ServerError $error): QueryException|MultipleStatementsException
    {
        return Errors::exception($sql, $error->hiding(QuotedValues::of($this->types, $types, $parameters, $error->field('M') ?? '')));
    }
}

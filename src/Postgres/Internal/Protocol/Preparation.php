<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Protocol;

use Amp\Cancellation;
use Spindle\Postgres\Internal\Columns;
use Spindle\Postgres\Internal\SessionChanges;
use Spindle\Postgres\Internal\SqlText;
use Spindle\Postgres\Internal\StatementLog;
use Spindle\Postgres\Internal\Types\Types;
use Spindle\Postgres\ProtocolException;
use Spindle\Postgres\QueryException;

use function Amp\async;

/** Prepares statements, and learns their types. Drops statements whose SQL text may have got another meaning. */
final class Preparation
{
    /** Maximum number of attempts to query types. A cancel request for another exchange may stop an attempt. */
    private const MAX_ATTEMPTS = 3;

    private const TEXT_OID = 25;

    /** The last exchange that may have changed the meaning of SQL texts; null once no rollback can undo the change. */
    private ?Exchange $meaningChange = null;

    private bool $hasChangedSchema = false;

    /** Whether {@see $meaningChange} or an earlier exchange of its transaction contains an ALTER. */
    private bool $isChangingSchema = false;

    public function __construct(
        private readonly Pipeline $pipeline,
        private readonly PreparedStatements $statements,
        public readonly Types $types,
        private readonly StatementLog $log,
        private readonly SchemaChanges $schemaChanges,
    ) {
        $schemaChanges->add($this);
        $weak = \WeakReference::create($this);
        $pipeline->conversation->onMeaningChange = static fn() => $weak->get()?->startGeneration();
    }

    public function isChangingSchema(): bool
    {
        $isInTransaction = $this->pipeline->conversation->status !== 'I' || $this->meaningChange?->done === false;

        return $this->isChangingSchema && $isInTransaction && $this->pipeline->isOpen();
    }

    /** Returns a name for a statement to prepare. During an ALTER of another session, no statement stays prepared. */
    public function newName(string $sql): string
    {
        return $this->schemaChanges->isOtherSessionChanging($this)
            ? ''
            : $this->statements->newName($sql, $this->pipeline->conversation->escapesWithBackslash);
    }

    /** Sends Parse and Describe, and waits for the answer. Pass the returned exchange to {@see register()}. */
    public function prepare(string $name, string $sql, ?Cancellation $cancellation): Exchange
    {
        $this->log->log("Preparing {$name}", $sql);
        $exchange = new Exchange();
        $exchange->executes = false;

        return $this->send(
            $exchange,
            $name,
            [FrontendMessages::parse($name, $sql) . FrontendMessages::describe($name) . FrontendMessages::SYNC],
            $cancellation,
        );
    }

    /**
     * Prepares and executes a statement in one round trip. Call this method only if the text of each value is the same
     * for all types ({@see Types::needsType()}), because the types of the parameters are unknown until the answer.
     *
     * @param list<mixed> $parameters
     * @param (\Closure(Exchange): void)|null $onSent
     */
    public function execute(
        string $name,
        string $sql,
        #[\SensitiveParameter]
        array $parameters,
        ?Cancellation $cancellation,
        ?\Closure $onSent = null,
    ): Exchange {
        $this->log->log("Preparing and executing {$name}", $sql);
        $values = [];
        foreach ($parameters as $index => $value) {
            $values[] = $this->types->encode(0, $value, $index + 1);
        }

        return $this->executeTexts($name, $sql, $values, $cancellation, $onSent);
    }

    /**
     * Returns the statement that the server has described in `$exchange`, and adds it to the cache even if its
     * execution failed. Does not add the statement if some of its types could not be queried. In this case, values of
     * these types are returned as strings. Does not add the statement either if another generation has started since
     * the statement was sent, because its text may have another meaning now.
     */
    public function register(
        string $name,
        string $sql,
        Exchange $exchange,
        ?Cancellation $cancellation,
    ): PreparedStatement {
        $parameters = $exchange->parameterTypes
            ?? throw ProtocolException::malformed('the server did not describe a statement');
        [$names, $oids] = $exchange->description ?? [null, []];
        $isKept = false;
        try {
            $isKept = $this->loadTypes([...$parameters, ...$oids], $exchange, $cancellation)
                && $exchange->generation === $this->statements->generation;
        } finally {
            if (!$isKept) {
                $this->close($name);
            }
        }
        $columns = $names === null ? null : new Columns($names, $oids, $this->types);
        $statement = new PreparedStatement(
            $name,
            $parameters,
            $columns,
            $this->types,
            SessionChanges::mayChangeSession($sql)
                || SessionChanges::mayChangeMeaning($sql)
                || $names === null && SessionChanges::mayCreateTable($sql),
            !SqlText::isRepeatable($sql),
        );
        if (!$isKept) {
            return $statement;
        }
        array_map($this->close(...), $this->statements->add($sql, $statement, $exchange->status !== 'I'));

        return $statement;
    }

    /**
     * Returns the function to call once the statement is sent; null if none is needed. A function is needed if the
     * statement may start a generation ({@see PreparedStatements}), or controls a transaction.
     *
     * @param bool $mayChange false if the statement is known not to change the meaning of SQL texts
     *
     * @return (\Closure(Exchange): void)|null
     */
    public function onSent(string $sql, bool $mayChange): ?\Closure
    {
        if ($mayChange && (SessionChanges::mayChangeMeaning($sql) || SessionChanges::mayCreateTable($sql))) {
            return fn(#[\SensitiveParameter] Exchange $exchange) => $this->onMeaningChange($exchange, $sql);
        }

        return SessionChanges::controlsTransaction($sql) ? fn() => $this->onTransactionControl($sql) : null;
    }

    /** Starts a generation. The exchange that may change the meaning of texts belongs to the previous generation. */
    public function onMeaningChange(#[\SensitiveParameter] Exchange $exchange, string $sql): void
    {
        $exchange->generation = $this->statements->generation;
        $this->meaningChange = $exchange;
        $this->statements->mayBecomeStale = true;
        $this->startGeneration();
        if (SchemaChanges::isChangingScript($sql)) {
            // A statement that stays prepared would keep its old types. Another preparation waits for the ALTER to end.
            $this->schemaChanges->startGenerations();
            $this->isChangingSchema = true;
        }
    }

    /** Drops all prepared statements, because their texts may have another meaning from now on. */
    public function startGeneration(): void
    {
        $this->closeAll($this->statements->startGeneration());
    }

    /** Keeps the statements of the last transaction if no transaction is open: no rollback can affect them now. */
    public function keepTentative(): void
    {
        if (
            $this->statements->mayBecomeStale
            && $this->pipeline->conversation->status === 'I'
            && ($this->meaningChange === null || $this->meaningChange->done)
        ) {
            $this->meaningChange = null;
            $this->isChangingSchema = false;
            $this->statements->keepTentative();
        }
    }

    /** Updates the cache after a query. The command tag shows whether the query affects prepared statements. */
    public function onCompleted(string $tag, string $sql, bool $hasColumns): void
    {
        $this->noteSchemaChange(SchemaChanges::isChange($tag, $sql));
        if (!$hasColumns && str_starts_with($tag, 'SELECT ')) { // SELECT … INTO has created a table
            $this->startGeneration();
        }
        if ($tag === 'ROLLBACK') {
            // A COMMIT that the server turned into a rollback has this tag too.
            $this->closeAll($this->statements->forgetTentative());
        }
        $this->keepTentative();
        if (\in_array($tag, ['DEALLOCATE', 'DEALLOCATE ALL', 'DISCARD ALL'], true)) {
            $this->statements->forgetAll();
        }
    }

    /** @param bool $isChange whether the schema may have changed. Other sessions see the change after COMMIT */
    public function noteSchemaChange(bool $isChange): void
    {
        if ($isChange) {
            $this->hasChangedSchema = true;
            // StatementRunner::query() calls this method again after the statement that ends the transaction.
            // PipelinedSession::send() would not do so, but it sends nothing while mayBecomeStale is true.
            $this->statements->mayBecomeStale = true;
            $this->startGeneration();
        }
        $hasEnded = $this->pipeline->conversation->status === 'I' || !$this->pipeline->isOpen();
        if ($this->hasChangedSchema && $hasEnded) {
            $this->hasChangedSchema = false;
            $this->schemaChanges->startGenerations();
        }
    }

    /** Notes that the server may have changed the schema, or still changes it: the caller got no answer. */
    public function onFailure(string $sql, \Throwable $failure): void
    {
        $mayChange = $this->hasChangedSchema || SchemaChanges::isChangingScript($sql);
        if ($mayChange && !$failure instanceof QueryException) {
            $this->noteSchemaChange(true);
            async(function (): void {
                $this->pipeline->settle(false, null);
                $this->noteSchemaChange(true);
            })->ignore();
        }
    }

    /**
     * Returns whether the server has refused a value because the parameter types have changed since the preparation, or
     * because the statement has become invalid. To find out, prepares the statement again. In a failed transaction,
     * this is not possible, so this method only forgets the statement and returns false.
     *
     * @param list<int> $types OIDs of the types with which the statement was prepared
     */
    public function hadOldTypes(string $sql, #[\SensitiveParameter] Exchange $exchange, array $types): bool
    {
        $mayHave = $types !== [] && !$exchange->isBound && $exchange->serverError?->mayComeFromOldTypes() === true;
        $known = $this->statements->find($sql);
        if (!$mayHave) {
            return false;
        }
        if ($known !== null && $known->parameterTypes !== $types) { // another fiber has prepared the statement again
            return $exchange->status === 'I';
        }
        $this->statements->forget($sql);
        $this->close($known->name ?? '');
        if ($exchange->status !== 'I') {
            return false;
        }
        $name = $this->newName($sql);
        $described = $this->prepare($name, $sql, null);

        return $described->serverError !== null
            || $this->register($name, $sql, $described, null)->parameterTypes !== $types;
    }

    /**
     * @param list<int> $oids OIDs of types
     *
     * @return bool whether all types are known now
     *
     * @throws QueryException when the query for types failed. Returns false instead if `$sent` has executed a statement
     *     outside a transaction, because the effects of that statement are permanent, and its caller needs the result
     */
    private function loadTypes(array $oids, #[\SensitiveParameter] Exchange $sent, ?Cancellation $cancellation): bool
    {
        $unknown = $this->types->notLoaded($oids);
        if ($unknown === []) {
            return true;
        }
        if ($sent->serverError !== null || $this->pipeline->conversation->status === 'E') {
            return false;
        }
        for ($attempt = 1;; ++$attempt) {
            $exchange = $this->executeTexts('', Types::LOAD_QUERY, ['{' . implode(',', $unknown) . '}'], $cancellation);
            if ($exchange->serverError === null) {
                break;
            }
            if ($exchange->status === 'I' && $sent->executes) {
                return false;
            }
            if ($exchange->status !== 'I' || !$exchange->isStoppedByMistake || $attempt === self::MAX_ATTEMPTS) {
                throw QueryException::of($exchange->serverError, Types::LOAD_QUERY);
            }
        }
        $names = $exchange->description[0]
            ?? throw ProtocolException::malformed('the server did not describe a statement');
        /** @var list<list<string|null>> $rows */
        $rows = array_merge(
            ...$exchange->rows?->batches(
                new Columns($names, array_fill(0, \count($names), self::TEXT_OID), $this->types),
                array_keys($names),
            ) ?? [],
        );
        $this->types->load($rows);

        return true;
    }

    /**
     * @param list<string|null> $values values in PostgreSQL's text format
     * @param (\Closure(Exchange): void)|null $onSent
     */
    private function executeTexts(
        string $name,
        string $sql,
        #[\SensitiveParameter]
        array $values,
        ?Cancellation $cancellation,
        ?\Closure $onSent = null,
    ): Exchange {
        $exchange = new Exchange();
        $exchange->onSent = $onSent;
        $exchange->mustNotRepeat = !SqlText::isRepeatable($sql);

        return $this->send($exchange, $name, [
            FrontendMessages::parse($name, $sql) . FrontendMessages::describe($name),
            ...FrontendMessages::bind("\0{$name}\0\0\0", $values, "\0\0"),
            FrontendMessages::EXECUTE . FrontendMessages::SYNC,
        ], $cancellation);
    }

    /** @param non-empty-list<string> $parts messages that prepare `$name`. If waiting fails, `$name` is deallocated */
    private function send(
        #[\SensitiveParameter]
        Exchange $exchange,
        string $name,
        #[\SensitiveParameter]
        array $parts,
        ?Cancellation $cancellation,
    ): Exchange {
        $isDone = false;
        try {
            $this->pipeline->submit($exchange, $parts, $cancellation);
            $exchange->generation ??= $this->statements->generation;
            $this->pipeline->await($exchange, $cancellation);
            $isDone = true;
        } finally {
            // The block also runs when the fiber is destroyed. The server may have prepared the statement already.
            if (!$isDone) {
                $this->close($name);
            }
        }

        return $exchange;
    }

    /** Drops prepared statements that a COMMIT, ROLLBACK or similar statement may make out of date. */
    private function onTransactionControl(string $sql): void
    {
        if ($this->statements->mayBecomeStale && $this->meaningChange !== null) {
            $this->startGeneration();
        } elseif ($this->statements->mayBecomeStale && SessionChanges::rollsBack($sql)) {
            $this->closeAll($this->statements->forgetTentative());
        }
    }

    /** @param list<string> $names names of prepared statements */
    private function closeAll(array $names): void
    {
        array_map($this->close(...), $names);
    }

    /** Deallocates a statement when the next exchange is sent. The server ignores an unknown name. */
    private function close(string $name): void
    {
        if ($name !== '') {
            $this->pipeline->pendingCloses .= FrontendMessages::closeStatement($name);
        }
    }
}

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
use Spindle\Postgres\Internal\Steps;
use Spindle\Postgres\Internal\Turn;
use Spindle\Postgres\Internal\Types\Types;
use Spindle\Postgres\InvalidParameterException;
use Spindle\Postgres\MultipleStatementsException;
use Spindle\Postgres\ProtocolException;
use Spindle\Postgres\QueryException;
use Spindle\Postgres\Result;

/**
 * The protocol spoken from PHP. Each query is one exchange of a {@see Pipeline}, and its statement stays prepared.
 *
 * The first time that a statement is sent with values whose way of travelling depends on the type that the server wants, such as a
 * string, the server is asked for that first; each time after that all is one round trip.
 */
final class NativeSession implements Session
{
    /** Rows of a stream that are fetched at first, then so many as make BYTES, and never more than MOST. */
    private const FIRST_ROWS = 50;
    private const BYTES = 0x4_0000;
    private const MOST_ROWS = 5_000;

    /** Bytes of a COPY that are gathered for a message, and that may wait to be written. */
    private const COPY_CHUNK = 0x1_0000;
    private const COPY_AHEAD = 0x4_0000;

    /** Bytes of a COPY's data that may wait to be taken. */
    private const COPY_BEHIND = 0x10_0000;

    /** How often a statement is sent that the server did not execute. */
    private const TRIES = 3;

    /** A COPY has the connection for itself. */
    private readonly Turn $copy;

    private int $portals = 0;

    private int $took = 0;

    /** Messages that close what is not needed any more, for the next time that something is sent. */
    private string $closing = '';

    public function __construct(
        private readonly Pipeline $pipeline,
        private readonly Statements $statements,
        private readonly Types $types,
        private readonly int $pid,
        private readonly SessionChanges $changes,
        private readonly Steps $steps,
    ) {
        $this->copy = new Turn('The connection is busy with a COPY until that is read to its end or left');
    }

    public function query(string $sql, #[\SensitiveParameter] array $parameters = [], ?Cancellation $cancellation = null): Result
    {
        // The common case without a detour: a statement that is prepared, on a connection where nothing else is to be minded.
        $statement = $cancellation === null ? $this->statements->find($sql) : null;
        $request = $statement?->request($parameters);
        if ($statement === null || $request === null || $statement->changesSession || $this->pipeline->cancelling || $this->closing !== '' || $this->copy->taken || $this->steps->wanted) {
            return $this->queryStepwise($sql, $parameters, $cancellation);
        }
        $exchange = new Exchange();
        $exchange->binary = $statement->binary;
        $this->pipeline->send($exchange, $request);
        try {
            $exchange->wait();
        } catch (\Throwable $interruption) {
            $this->pipeline->abandon($exchange, null);
            throw $interruption;
        }
        if ($exchange->failure !== null) {
            throw $exchange->failure;
        }
        $this->took = $exchange->took;
        if ($exchange->error !== null || $exchange->copy !== '') {
            $this->ensureAgain($sql, $parameters, $exchange, 1);

            return $this->queryStepwise($sql, $parameters, $cancellation);
        }

        return new Result($statement->columns, $exchange, $exchange->rows, $exchange->affected());
    }

    public function stream(string $sql, #[\SensitiveParameter] array $parameters, ?Cancellation $cancellation): \Generator
    {
        $statement = $this->statements->find($sql) ?? $this->prepare($sql, $cancellation);
        $this->steps->log('Streaming', $sql);
        $portal = 'p' . ++$this->portals;
        $values = $statement->encode($parameters);
        $exchange = new Exchange();
        $exchange->binary = $statement->binary;
        $this->send($exchange, $cancellation, [
            $statement->name === '' ? Frontend::parse('', $sql) : '',
            ...$statement->bind($values, $portal),
            Frontend::execute($portal, self::FIRST_ROWS) . Frontend::SYNC,
        ]);
        try {
            for ($index = 0;; $exchange = $next) {
                $this->pipeline->await($exchange, $cancellation);
                if ($exchange->error !== null) {
                    throw $this->exception($sql, $exchange->error->hiding($values));
                }
                $next = $exchange->suspended ? $this->fetchMore($portal, $exchange, $cancellation) : null;
                foreach (new Result($statement->columns, $exchange, $exchange->rows, 0) as $row) {
                    yield $index++ => $row;
                }
                if ($next === null) {
                    return;
                }
            }
        } finally {
            if ($this->pipeline->isOpen()) {
                // Rows that were fetched ahead. To cancel that would fail the transaction.
                $exchange = $next ?? $exchange;
                $exchange->discarded = true;
                $this->closing .= Frontend::closePortal($portal);
            }
        }
    }

    public function copyFrom(string $sql, iterable $data, ?Cancellation $cancellation): int
    {
        $rows = CopyRows::of($sql, $data, $this->types, fn(string $columns): array => $this->prepare($columns, $cancellation)->columns->oids ?? []);
        $this->copy->take($cancellation);
        try {
            $exchange = $this->startCopy('G', $sql, null, $cancellation);
            try {
                $this->sendRows($rows, $exchange, $cancellation);
            } catch (\Throwable $failure) {
                if (!$exchange->done && $this->pipeline->isOpen()) {
                    $this->pipeline->write(Frontend::copyFail('the client gave up'));
                }
                throw $failure;
            }

            return $this->endCopy($sql, $exchange, $cancellation)->affected();
        } finally {
            $this->copy->give();
        }
    }

    public function copyTo(string $sql, ?Cancellation $cancellation): \Generator
    {
        $this->copy->take($cancellation);
        $rows = [];
        $bytes = 0;
        $exchange = null;
        try {
            $exchange = $this->startCopy('H', $sql, function (string $row, Exchange $exchange) use (&$rows, &$bytes): void {
                $rows[] = $row;
                $bytes += \strlen($row);
                if ($bytes > self::COPY_BEHIND) {
                    $this->pipeline->pause(true);
                }
                $exchange->wake();
            }, $cancellation);
            while ($rows !== [] || !$exchange->done) {
                if ($rows === []) {
                    $this->pipeline->await($exchange, $cancellation);
                }
                [$taken, $rows, $bytes] = [$rows, [], 0];
                $this->pipeline->pause(false);
                yield from $taken;
            }
            $this->endCopy($sql, $exchange, $cancellation);
        } finally {
            if ($exchange !== null && $this->pipeline->isOpen()) {
                $this->pipeline->abandon($exchange, null);
                $this->pipeline->pause(false);
            }
            $this->copy->give();
        }
    }

    public function script(string $sql, ?Cancellation $cancellation = null): void
    {
        $this->changes->note($sql);
        $this->runScript($sql, $cancellation);
    }

    private function runScript(string $sql, ?Cancellation $cancellation): void
    {
        $this->steps->log('Executing a script', $sql);
        $exchange = new Exchange(extended: false);
        $this->send($exchange, $cancellation, [Frontend::query($sql)]);
        $this->pipeline->await($exchange, $cancellation);
        while (!$exchange->done) {
            // A COPY among them.
            if ($exchange->copy === 'G') {
                $this->pipeline->write(Frontend::copyFail('a script has no data'));
            }
            $this->pipeline->await($exchange, $cancellation);
        }
        if ($exchange->failure !== null) {
            throw $exchange->failure;
        }
        if ($exchange->error !== null) {
            throw QueryException::of($exchange->error, $sql);
        }
    }

    public function pipelines(): bool
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
        return $this->pipeline->since;
    }

    public function isOpen(): bool
    {
        return $this->pipeline->isOpen();
    }

    public function accepts(): bool
    {
        return !$this->pipeline->cancelling && !$this->copy->taken;
    }

    public function took(): int
    {
        return $this->took;
    }

    public function ping(?Cancellation $cancellation = null): void
    {
        $exchange = new Exchange();
        $this->send($exchange, $cancellation, [Frontend::SYNC]);
        $this->pipeline->await($exchange, $cancellation);
    }

    public function isChanged(): bool
    {
        return $this->changes->any();
    }

    public function noteChange(): void
    {
        $this->changes->note();
    }

    public function reset(): void
    {
        $this->settle();
        if ($this->pipeline->status !== 'I') {
            $this->query('ROLLBACK');
        }
        if ($this->changes->any()) {
            $this->runScript($this->changes->undo(), null);
            if ($this->changes->concernPrepared()) {
                $this->statements->forgetAll();
            }
            $this->changes->forget();
        }
    }

    public function transactionStatus(): string
    {
        return $this->pipeline->status;
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

    /** @param list<mixed> $parameters */
    private function queryStepwise(string $sql, #[\SensitiveParameter] array $parameters, ?Cancellation $cancellation): Result
    {
        $cancellation?->throwIfRequested();
        for ($tries = 1;; ++$tries) {
            $statement = $this->statements->find($sql);
            if ($statement === null && self::needsTypes($parameters)) {
                $statement = $this->prepare($sql, $cancellation);
            }
            [$exchange, $columns] = $statement === null
                ? $this->executeUnprepared($sql, $parameters, $cancellation)
                : [$this->execute($sql, $statement, $parameters, $cancellation), $statement->columns];
            $this->took = $exchange->took;
            if ($exchange->error === null && $exchange->copy === '') {
                $this->steps->log("Done: {$exchange->tag}, {$exchange->rows} rows", $sql);

                return new Result($columns, $exchange, $exchange->rows, $exchange->affected());
            }
            $this->ensureAgain($sql, $parameters, $exchange, $tries);
        }
    }

    /** @param list<mixed> $parameters */
    private function execute(string $sql, Prepared $statement, #[\SensitiveParameter] array $parameters, ?Cancellation $cancellation): Exchange
    {
        $this->steps->log("Executing {$statement->name}", $sql);
        if ($statement->changesSession) {
            $this->changes->note($sql);
        }
        $values = $statement->encode($parameters);
        $exchange = new Exchange();
        $exchange->binary = $statement->binary;
        $this->send($exchange, $cancellation, [
            $statement->name === '' ? Frontend::parse('', $sql) : '',
            ...$statement->bind($values),
            Frontend::EXECUTE . Frontend::SYNC,
        ]);
        $this->pipeline->await($exchange, $cancellation);

        return $exchange;
    }

    /**
     * All in one round trip, for values that travel as they are whatever the server takes them for.
     *
     * @param list<mixed> $parameters
     *
     * @return array{Exchange, Columns|null}
     */
    private function executeUnprepared(string $sql, #[\SensitiveParameter] array $parameters, ?Cancellation $cancellation): array
    {
        if (SessionChanges::suspects($sql)) {
            $this->changes->note($sql);
        }
        $name = $this->statements->name();
        $this->steps->log("Preparing and executing {$name}", $sql);
        $values = [];
        foreach ($parameters as $index => $value) {
            $values[] = $this->types->encode(0, $value, $index + 1);
        }
        $exchange = new Exchange();
        $this->send($exchange, $cancellation, [
            Frontend::parse($name, $sql) . Frontend::describe($name),
            ...Frontend::bind("\0{$name}\0\0\0", $values, "\0\0"),
            Frontend::EXECUTE . Frontend::SYNC,
        ]);
        $this->pipeline->await($exchange, $cancellation);

        // Described, so parsed, even where it failed afterwards.
        return [$exchange, $exchange->parameters === null ? null : $this->register($sql, $name, $exchange, $cancellation)->columns];
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

    private function prepare(string $sql, ?Cancellation $cancellation): Prepared
    {
        for ($tries = 1;; ++$tries) {
            $name = $this->statements->name();
            $this->steps->log("Preparing {$name}", $sql);
            $exchange = new Exchange();
            $this->send($exchange, $cancellation, [Frontend::parse($name, $sql) . Frontend::describe($name) . Frontend::SYNC]);
            $this->pipeline->await($exchange, $cancellation);
            if ($exchange->error === null) {
                return $this->register($sql, $name, $exchange, $cancellation);
            }
            $this->ensureAgain($sql, [], $exchange, $tries);
        }
    }

    private function register(string $sql, string $name, Exchange $exchange, ?Cancellation $cancellation): Prepared
    {
        $parameters = $exchange->parameters ?? throw ProtocolException::malformed('a statement was not described');
        [$names, $oids] = $exchange->description ?? [null, []];
        if ($exchange->error === null) {
            $this->learnTypes([...$parameters, ...$oids], $cancellation);
        }
        $statement = new Prepared($name, $parameters, $names === null ? null : new Columns($names, $oids, $this->types), $this->types, SessionChanges::suspects($sql));
        foreach ($this->statements->add($sql, $statement) as $gone) {
            $this->closing .= Frontend::closeStatement($gone);
        }

        return $statement;
    }

    /** @param list<int> $oids */
    private function learnTypes(array $oids, ?Cancellation $cancellation): void
    {
        $unknown = $this->types->unknown($oids);
        if ($unknown !== [] && $this->pipeline->status !== 'E') {
            $exchange = new Exchange();
            $this->send($exchange, $cancellation, [
                Frontend::parse('', Types::QUERY) . Frontend::describe(''),
                ...Frontend::bind("\0\0\0\0", ['{' . implode(',', $unknown) . '}'], "\0\0"),
                Frontend::EXECUTE . Frontend::SYNC,
            ]);
            $this->pipeline->await($exchange, $cancellation);
            if ($exchange->error !== null || $exchange->description === null) {
                throw $this->exception(Types::QUERY, $exchange->error ?? throw ProtocolException::malformed('a statement was not described'));
            }
            $text = new Columns($exchange->description[0], array_fill(0, \count($exchange->description[0]), 25), $this->types);
            /** @var list<list<string|null>> $rows */
            $rows = array_merge(...$exchange->batches($text));
            $this->types->learn($rows);
        }
    }

    private function fetchMore(string $portal, Exchange $last, ?Cancellation $cancellation): Exchange
    {
        $size = array_sum(array_map(\strlen(...), $last->chunks)) / max(1, $last->rows);
        $exchange = new Exchange();
        $exchange->binary = $last->binary;
        $this->send($exchange, $cancellation, [Frontend::execute($portal, (int) max(1, min(self::MOST_ROWS, self::BYTES / ($size + 1)))) . Frontend::SYNC]);

        return $exchange;
    }

    /** @param list<string> $parts of messages */
    private function send(Exchange $exchange, ?Cancellation $cancellation, #[\SensitiveParameter] array $parts): void
    {
        while ($this->pipeline->cancelling || $this->copy->taken) {
            $this->pipeline->settle(false, $cancellation);
            if ($this->copy->taken) {
                $this->copy->take($cancellation);
                $this->copy->give();
            }
        }
        if ($this->closing !== '') {
            $parts = [$this->closing, ...$parts];
            $this->closing = '';
        }
        $this->pipeline->send($exchange, array_shift($parts) ?? '');
        array_walk($parts, $this->pipeline->write(...));
    }

    /** @param (\Closure(string, Exchange): void)|null $data */
    private function startCopy(string $direction, string $sql, ?\Closure $data, ?Cancellation $cancellation): Exchange
    {
        $this->steps->log('Copying', $sql);
        $this->pipeline->settle(false, $cancellation);
        $exchange = new Exchange(extended: false);
        $exchange->data = $data;
        $this->pipeline->send($exchange, Frontend::query($sql));
        $this->pipeline->await($exchange, $cancellation);
        if ($exchange->copy !== $direction) {
            if ($exchange->copy === 'G') {
                $this->pipeline->write(Frontend::copyFail('this is no COPY … TO STDOUT'));
            }
            $this->endCopy($sql, $exchange, $cancellation);
            throw new \LogicException($direction === 'G' ? 'copyFrom() takes a COPY … FROM STDIN' : 'copyTo() takes a COPY … TO STDOUT');
        }

        return $exchange;
    }

    /** @param iterable<string> $rows */
    private function sendRows(iterable $rows, Exchange $exchange, ?Cancellation $cancellation): void
    {
        $chunk = '';
        foreach ($rows as $row) {
            $chunk .= $row;
            if (\strlen($chunk) < self::COPY_CHUNK) {
                continue;
            }
            $this->pipeline->write(Frontend::copyData($chunk));
            $chunk = '';
            while (!$exchange->done && $exchange->error === null && $this->pipeline->unwritten() > self::COPY_AHEAD) {
                $this->pipeline->await($exchange, $cancellation);
            }
            $cancellation?->throwIfRequested();
            if ($exchange->done || $exchange->error !== null) {
                return;
            }
        }
        $this->pipeline->write(($chunk === '' ? '' : Frontend::copyData($chunk)) . Frontend::COPY_DONE);
    }

    private function endCopy(string $sql, Exchange $exchange, ?Cancellation $cancellation): Exchange
    {
        while (!$exchange->done) {
            $this->pipeline->await($exchange, $cancellation);
        }
        if ($exchange->failure !== null) {
            throw $exchange->failure;
        }

        return $exchange->error === null ? $exchange : throw QueryException::of($exchange->error, $sql);
    }

    /**
     * Throws what failed, unless the statement was not executed at all and may be sent again.
     *
     * @param list<mixed> $parameters
     */
    private function ensureAgain(string $sql, #[\SensitiveParameter] array $parameters, Exchange $exchange, int $tries): void
    {
        $error = $exchange->error;
        if ($error === null) {
            throw new \LogicException($exchange->copy === 'G' ? 'A COPY … FROM STDIN is for copyFrom()' : 'A COPY … TO STDOUT is for copyTo()');
        }
        if ($exchange->copy === 'G') {
            throw new \LogicException('A COPY … FROM STDIN is for copyFrom()');
        }
        $this->steps->log("Failed with SQLSTATE {$error->sqlState()}", $sql);
        $stale = $error->isStale();
        if ($stale) {
            $error->sqlState() === '0A000' ? $this->statements->forget($sql) : $this->statements->forgetAll();
            if ($tries > 1 && $error->sqlState() !== '0A000') {
                $this->statements->keepNone();
            }
        }
        if (!($stale || $exchange->struck) || $exchange->status !== 'I' || $tries > self::TRIES) {
            throw $this->exception($sql, $error->hiding($this->texts($parameters)));
        }
    }

    /**
     * Of all values, as messages of the server may quote them.
     *
     * @param array<mixed> $parameters
     *
     * @return list<string|null>
     */
    private function texts(#[\SensitiveParameter] array $parameters): array
    {
        $texts = [];
        foreach (array_values($parameters) as $index => $value) {
            try {
                $texts[] = $this->types->encode(0, $value, $index + 1);
            } catch (InvalidParameterException) {
                $texts[] = null;
            }
        }

        return $texts;
    }

    private function exception(string $sql, #[\SensitiveParameter] ServerError $error): QueryException|MultipleStatementsException
    {
        $second = $error->sqlState() === '42601' && str_contains((string) $error->field('R'), 'exec_parse_message') ? SqlText::second($sql) : null;

        return $second === null ? QueryException::of($error, $sql) : MultipleStatementsException::in(...$second);
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Native;

use Amp\Cancellation;
use Spindle\Postgres\Internal\Columns;
use Spindle\Postgres\Internal\SessionChanges;
use Spindle\Postgres\Internal\Steps;
use Spindle\Postgres\Internal\Types\Types;
use Spindle\Postgres\ProtocolException;
use Spindle\Postgres\QueryException;

/** Has the server prepare statements, and learns the types of their parameters and columns. */
final readonly class Preparation
{
    /** The OID of text. */
    private const TEXT = 25;

    public function __construct(
        private Pipeline $pipeline,
        public Statements $statements,
        public Types $types,
        private Steps $steps,
    ) {}

    /** Parse and Describe; {@see register()} takes what comes of it. */
    public function prepare(string $name, string $sql, ?Cancellation $cancellation): Exchange
    {
        $this->steps->log("Preparing {$name}", $sql);
        $exchange = new Exchange();
        $exchange->executes = false;
        $this->pipeline->submit($exchange, [Frontend::parse($name, $sql) . Frontend::describe($name) . Frontend::SYNC], $cancellation);
        $this->pipeline->await($exchange, $cancellation);

        return $exchange;
    }

    /**
     * All in one round trip, for values that travel as they are whatever the server takes them for.
     *
     * @param list<mixed> $parameters
     */
    public function execute(string $name, string $sql, #[\SensitiveParameter] array $parameters, ?Cancellation $cancellation): Exchange
    {
        $this->steps->log("Preparing and executing {$name}", $sql);
        $values = [];
        foreach ($parameters as $index => $value) {
            $values[] = $this->types->encode(0, $value, $index + 1);
        }

        return $this->executeTexts($name, $sql, $values, $cancellation);
    }

    /** A statement that was described, so parsed, even where it failed afterwards. */
    public function register(string $name, string $sql, Exchange $exchange, ?Cancellation $cancellation): Prepared
    {
        $parameters = $exchange->parameters ?? throw ProtocolException::malformed('a statement was not described');
        [$names, $oids] = $exchange->description ?? [null, []];
        if ($exchange->error === null) {
            $this->learn([...$parameters, ...$oids], $cancellation);
        }
        $columns = $names === null ? null : new Columns($names, $oids, $this->types);
        $statement = new Prepared($name, $parameters, $columns, $this->types, SessionChanges::suspects($sql));
        foreach ($this->statements->add($sql, $statement) as $gone) {
            $this->pipeline->closing .= Frontend::closeStatement($gone);
        }

        return $statement;
    }

    /** @param list<int> $oids */
    private function learn(array $oids, ?Cancellation $cancellation): void
    {
        $unknown = $this->types->unknown($oids);
        if ($unknown === [] || $this->pipeline->conversation->status === 'E') {
            return;
        }
        $exchange = $this->executeTexts('', Types::QUERY, ['{' . implode(',', $unknown) . '}'], $cancellation);
        if ($exchange->error !== null) {
            throw QueryException::of($exchange->error, Types::QUERY);
        }
        $names = $exchange->description[0] ?? throw ProtocolException::malformed('a statement was not described');
        /** @var list<list<string|null>> $rows */
        $rows = array_merge(...$exchange->batches(new Columns($names, array_fill(0, \count($names), self::TEXT), $this->types), array_keys($names)));
        $this->types->learn($rows);
    }

    /** @param list<string|null> $values */
    private function executeTexts(string $name, string $sql, #[\SensitiveParameter] array $values, ?Cancellation $cancellation): Exchange
    {
        $exchange = new Exchange();
        $this->pipeline->submit($exchange, [
            Frontend::parse($name, $sql) . Frontend::describe($name),
            ...Frontend::bind("\0{$name}\0\0\0", $values, "\0\0"),
            Frontend::EXECUTE . Frontend::SYNC,
        ], $cancellation);
        $this->pipeline->await($exchange, $cancellation);

        return $exchange;
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Native;

use Spindle\Postgres\Internal\Columns;
use Spindle\Postgres\Internal\SessionChanges;
use Spindle\Postgres\Internal\Types\Types;
use Spindle\Postgres\InvalidParameterException;

/** A statement that the server has prepared. */
final class Prepared
{
    /** The OID of bytea, whose values are bytes: for all others a whole number is the same text. */
    private const BYTEA = 17;

    /** Statement and formats of the parameters, as Bind has them behind the portal. */
    private readonly string $target;

    /** Bind's payload for the unnamed portal, up to the values. */
    private readonly string $unnamedPortal;

    /** Bind's payload behind the values, and the messages behind that. */
    private readonly string $ending;

    /** What Bind has beside values and what is before them, in bytes, its length included. */
    private readonly int $rest;

    /** Values that {@see request()} takes. */
    private readonly int $count;

    /** Of the result. */
    private readonly string $formats;

    /** When it was used last, by the count of {@see Statements}. */
    public int $lastUse = 0;

    /**
     * @param string       $name       '' for a statement that has to be parsed each time
     * @param list<int>    $parameters their types' OIDs
     * @param Columns|null $columns    null for a statement without rows
     * @param bool         $changesSession whether it may change the session, or what statements mean: {@see SessionChanges}
     * @param bool         $once           whether an error may leave something done of it: {@see Exchange::$once}
     */
    public function __construct(
        public readonly string $name,
        public readonly array $parameters,
        public readonly ?Columns $columns,
        private readonly Types $types,
        public readonly bool $changesSession,
        public readonly bool $once,
    ) {
        $this->target = "{$name}\0" . self::formats(array_map(Types::kind(...), $parameters));
        $this->formats = $columns->formats ?? "\0\0";
        $this->unnamedPortal = "\0{$this->target}" . pack('n', \count($parameters));
        $this->ending = $this->formats . Frontend::EXECUTE . Frontend::SYNC;
        $this->rest = \strlen($this->formats) + 4;
        // None has so many, so that those without a name are not sent by request().
        $this->count = $name === '' ? -1 : \count($parameters);
    }

    /**
     * @param array<mixed> $values
     *
     * @return list<string|null>
     *
     * @throws InvalidParameterException
     */
    public function encode(#[\SensitiveParameter] array $values): array
    {
        if (\count($values) !== \count($this->parameters) || !array_is_list($values)) {
            throw InvalidParameterException::count(\count($values), \count($this->parameters));
        }
        $encoded = [];
        foreach ($this->parameters as $index => $oid) {
            $value = $values[$index];
            $encoded[] = \is_int($value) && $oid !== self::BYTEA ? (string) $value : $this->types->encode($oid, $value, $index + 1);
        }

        return $encoded;
    }

    /**
     * Bind, Execute and Sync, for all rows.
     *
     * Dense, for it runs for each statement, and a call costs as much as the encoding of an integer.
     *
     * @param array<mixed> $values
     *
     * @return string|null null when there are large values or another number of them than there has to be, or it has to be parsed each
     *                     time: then it takes {@see encode()} and {@see bind()}
     */
    public function request(#[\SensitiveParameter] array $values): ?string
    {
        if (\count($values) !== $this->count || !array_is_list($values)) {
            return null;
        }
        $body = $this->unnamedPortal;
        foreach ($this->parameters as $index => $oid) {
            $value = $values[$index];
            $text = \is_int($value) && $oid !== self::BYTEA ? (string) $value : $this->types->encode($oid, $value, $index + 1);
            if ($text === null) {
                $body .= "\xFF\xFF\xFF\xFF";
                continue;
            }
            $length = \strlen($text);
            if ($length < 256) {
                $body .= "\0\0\0" . \chr($length) . $text;
            } elseif ($length < Frontend::LARGE) {
                $body .= pack('N', $length) . $text;
            } else {
                return null;
            }
        }

        return 'B' . pack('N', \strlen($body) + $this->rest) . $body . $this->ending;
    }

    /**
     * Bind.
     *
     * @param list<string|null> $values
     *
     * @return list<string> parts, large values in parts of their own
     */
    public function bind(#[\SensitiveParameter] array $values, string $portal = ''): array
    {
        return Frontend::bind("{$portal}\0{$this->target}", $values, $this->formats);
    }

    /** @param list<int> $kinds */
    private static function formats(array $kinds): string
    {
        return \in_array(Types::BYTEA, $kinds, true)
            ? pack('n*', \count($kinds), ...array_map(static fn(int $kind): int => $kind === Types::BYTEA ? 1 : 0, $kinds))
            : "\0\0";
    }
}

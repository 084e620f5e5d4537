<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Native;

use Spindle\Postgres\Internal\Columns;
use Spindle\Postgres\Internal\SessionChanges;
use Spindle\Postgres\Internal\Types\Types;
use Spindle\Postgres\InvalidParameterException;

/** A statement that the server has prepared. */
final class PreparedStatement
{
    /** OID of bytea, whose values are binary. For all other types, a whole number has the same text. */
    private const BYTEA_OID = 17;

    /** Statement and formats of the parameters, as they follow the portal in Bind. */
    private readonly string $target;

    /** Bind's payload for the unnamed portal, up to the values. */
    private readonly string $unnamedPortal;

    /** Bind's payload after the values, and the messages after Bind. */
    private readonly string $ending;

    /** Bytes of Bind's length field and of the formats of the result columns. */
    private readonly int $rest;

    /** Number of values that {@see request()} accepts; -1 for none. */
    private readonly int $count;

    /** Formats of the result columns. */
    private readonly string $formats;

    /** Time of the last use, by the counter of {@see PreparedStatements}. */
    public int $lastUse = 0;

    /**
     * @param string $name '' for a statement that has to be parsed each time
     * @param list<int> $parameters type OIDs of the parameters
     * @param Columns|null $columns null for a statement without rows
     * @param bool $changesSession whether it may change the session or texts' meaning: {@see SessionChanges}
     * @param bool $mustNotRepeat whether an error may leave part of the statement done: {@see Exchange::$mustNotRepeat}
     */
    public function __construct(
        public readonly string $name,
        public readonly array $parameters,
        public readonly ?Columns $columns,
        private readonly Types $types,
        public readonly bool $changesSession,
        public readonly bool $mustNotRepeat,
    ) {
        $this->target = "{$name}\0" . self::formats(array_map(Types::kind(...), $parameters));
        $this->formats = $columns->formats ?? "\0\0";
        $this->unnamedPortal = "\0{$this->target}" . pack('n', \count($parameters));
        $this->ending = $this->formats . FrontendMessages::EXECUTE . FrontendMessages::SYNC;
        $this->rest = \strlen($this->formats) + 4;
        // No list has -1 values, so request() refuses statements without a name.
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
            $encoded[] = \is_int($value) && $oid !== self::BYTEA_OID
                ? (string) $value
                : $this->types->encode($oid, $value, $index + 1);
        }

        return $encoded;
    }

    /**
     * Returns Bind, Execute and Sync for all rows, as one string. Calls are inlined, because this runs for each
     * statement and a call costs as much as encoding an integer.
     *
     * @param array<mixed> $values
     *
     * @return string|null null for large values, a wrong number of values, or a statement without a name: then use
     *     {@see encode()} and {@see bind()}
     */
    public function request(#[\SensitiveParameter] array $values): ?string
    {
        if (\count($values) !== $this->count || !array_is_list($values)) {
            return null;
        }
        $body = $this->unnamedPortal;
        foreach ($this->parameters as $index => $oid) {
            $value = $values[$index];
            $text = \is_int($value) && $oid !== self::BYTEA_OID
                ? (string) $value
                : $this->types->encode($oid, $value, $index + 1);
            if ($text === null) {
                $body .= "\xFF\xFF\xFF\xFF";
                continue;
            }
            $length = \strlen($text);
            if ($length < 256) {
                $body .= "\0\0\0" . \chr($length) . $text;
            } elseif ($length < FrontendMessages::LARGE_BYTES) {
                $body .= pack('N', $length) . $text;
            } else {
                return null;
            }
        }

        return 'B' . pack('N', \strlen($body) + $this->rest) . $body . $this->ending;
    }

    /**
     * Encodes Bind.
     *
     * @param list<string|null> $values
     *
     * @return list<string> parts of the message; each large value is a separate part
     */
    public function bind(#[\SensitiveParameter] array $values, string $portal = ''): array
    {
        return FrontendMessages::bind("{$portal}\0{$this->target}", $values, $this->formats);
    }

    /** @param list<int> $kinds */
    private static function formats(array $kinds): string
    {
        return \in_array(Types::BYTEA, $kinds, true)
            ? pack(
                'n*',
                \count($kinds),
                ...array_map(static fn(int $kind): int => $kind === Types::BYTEA ? 1 : 0, $kinds),
            )
            : "\0\0";
    }
}

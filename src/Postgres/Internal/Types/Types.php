<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Types;

use Spindle\Internal\FreeMemory;
use Spindle\Postgres\Internal\SizeLimits;
use Spindle\Postgres\InvalidParameterException;
use Spindle\Postgres\JsonMode;
use Spindle\Postgres\ProtocolException;
use Spindle\Postgres\ResultTooLargeException;

/**
 * Converts values to and from PostgreSQL's text format. An OID is a type's number on the server. Types that are not
 * built in are loaded from the database once ({@see LOAD_QUERY}). Values of unknown types are strings. No message or
 * trace of an exception contains a value.
 */
final class Types
{
    public const PRELOADED = [
        ArrayType::class,
        BuiltInTypes::class,
        ByteaType::class,
        DateTimeType::class,
        IntervalType::class,
        JsonMarks::class,
        JsonType::class,
        MultirangeType::class,
        RangeType::class,
        Scalar::class,
        ScalarType::class,
    ];

    /**
     * Kind of values that remain strings in PHP. Callers use the kinds to decode frequent types themselves, because a
     * call of {@see self::decode()} takes longer.
     */
    public const TEXT = 0;

    /** Kind of values that are decoded by `(int) $text`. */
    public const INT = 1;

    /** Kind of values that are decoded by `(float) $text`, except for "NaN", "Infinity" and "-Infinity". */
    public const FLOAT = 2;

    /** Kind of values that are decoded by `$text === 't'`. */
    public const BOOL = 3;

    /** Kind of bytea values. {@see self::encode()} returns the bytes of such a value, not text. */
    public const BYTEA = 4;

    /** Kind of values that only {@see self::decode()} decodes. */
    public const OTHER = 5;

    /**
     * Query for the rows of {@see self::load()}: types and their component types, such as the element type of an
     * array. $1 is an array of OIDs, such as "{16385,16391}". The query uses to_jsonb() to read the column
     * rngmultitypid, because naming this column would be an error before PostgreSQL 14.
     */
    public const LOAD_QUERY = <<<'SQL'
        WITH RECURSIVE found (oid, kind, base, name, delimiter) AS (
            SELECT NULL::pg_catalog.oid, NULL::pg_catalog.text, wanted, NULL::pg_catalog.text, NULL::pg_catalog.text
            FROM pg_catalog.unnest($1::pg_catalog.oid[]) AS wanted
            UNION
            SELECT f.base, k.kind, k.base, pg_catalog.format_type(t.oid, NULL), t.typdelim::pg_catalog.text
            FROM found f
            LEFT JOIN pg_catalog.pg_type t ON t.oid = f.base
            LEFT JOIN LATERAL (
                SELECT 'domain', t.typbasetype WHERE t.typtype = 'd'
                UNION ALL SELECT 'range', r.rngsubtype FROM pg_catalog.pg_range r WHERE r.rngtypid = t.oid
                UNION ALL SELECT 'multirange', r.rngtypid FROM pg_catalog.pg_range r
                WHERE t.typtype = 'm' AND pg_catalog.to_jsonb(r) ->> 'rngmultitypid' = t.oid::pg_catalog.text
                UNION ALL SELECT 'array', e.oid FROM pg_catalog.pg_type e WHERE e.oid = t.typelem AND e.typarray = t.oid
            ) k (kind, base) ON true
            WHERE f.base <> 0
        )
        SELECT oid, kind, base, name, delimiter FROM found WHERE oid <> 0
        SQL;

    /**
     * @var array<int, array{string|null, int, non-empty-string}> loaded types by OID: kind ("array", "domain", "range",
     *     "multirange"; null for others); OID of the component type; delimiter between array elements
     */
    private array $loaded = [];

    /** @var array<int, string> names of loaded types, by OID */
    private array $names = [];

    /** @var array<int, Type> types created so far, by OID */
    private array $types = [];

    /** Start time of the server with these types; null while unknown. The time identifies the server. */
    private ?string $serverStartTime = null;

    /** Types of another server, the last one that {@see forServer()} got. Types of earlier servers are not kept. */
    private ?self $otherServer = null;

    public function __construct(private readonly JsonMode $json = JsonMode::Arrays) {}

    /** Returns the types of the server with this start time. Each server has its own OIDs. Returns $this for null. */
    public function forServer(?string $startTime): self
    {
        $this->serverStartTime ??= $startTime;
        if ($startTime === null || $this->serverStartTime === $startTime) {
            return $this;
        }
        if ($this->otherServer?->serverStartTime !== $startTime) {
            $this->otherServer = new self($this->json);
            $this->otherServer->serverStartTime = $startTime;
        }

        return $this->otherServer;
    }

    public static function kind(int $oid): int
    {
        return BuiltInTypes::SCALARS[$oid][0] ?? self::OTHER;
    }

    /**
     * Returns whether the encoding of a value depends on the type of its parameter. null and integers have the same
     * text for all types. Floats also have one text for all types, except in {@see JsonMode::Lossless}: there, JSON
     * types write 1.0 instead of 1, and refuse NAN and INF. A boolean is 0 or 1 for numeric types, and false or true in
     * JSON.
     */
    public function needsType(#[\SensitiveParameter] mixed $value): bool
    {
        return $value !== null
            && !\is_int($value)
            && (!\is_float($value) || $this->json === JsonMode::Lossless);
    }

    public static function hex(#[\SensitiveParameter] string $bytes): string
    {
        return ByteaType::hex($bytes);
    }

    /**
     * @param list<int> $oids
     *
     * @return list<int> OIDs of types that are neither built in nor loaded, for {@see self::LOAD_QUERY}
     */
    public function notLoaded(array $oids): array
    {
        $unknown = [];
        foreach ($oids as $oid) {
            if (!self::isBuiltIn($oid) && !isset($this->loaded[$oid])) {
                $unknown[$oid] = $oid;
            }
        }

        return array_values($unknown);
    }

    /**
     * @param list<array<string|null>> $rows result of {@see self::LOAD_QUERY}
     *
     * @throws ProtocolException
     */
    public function load(array $rows): void
    {
        foreach ($rows as $row) {
            if (\count($row) !== 5) {
                throw ProtocolException::malformed('the description of a type has ' . \count($row) . ' columns');
            }
            [$oid, $kind, $base, $name, $delimiter] = array_values($row);
            $this->loaded[(int) $oid] = [
                $kind,
                (int) $base,
                $delimiter === null || $delimiter === '' ? ',' : $delimiter,
            ];
            $this->names[(int) $oid] = $name ?? "the type {$oid}";
        }
        $this->types = []; // a cached type may have a component that is loaded only now
    }

    /**
     * @throws ProtocolException when the text is not a value of the type
     * @throws ResultTooLargeException when too little memory is left for the value
     */
    public function decode(int $oid, #[\SensitiveParameter] string $text): mixed
    {
        $length = \strlen($text);
        if ($length > SizeLimits::UNCHECKED_BYTES && !(new FreeMemory())->allowsPart($length, $length)) {
            throw ResultTooLargeException::memory("a value of {$length} bytes");
        }

        return ($this->types[$oid] ?? $this->type($oid))->decode($text);
    }

    /**
     * Encodes a parameter as text. For bytea, returns bytes; for a domain over bytea, returns text.
     *
     * @param int $position number of the parameter, starting at 1
     *
     * @throws InvalidParameterException
     */
    public function encode(int $oid, #[\SensitiveParameter] mixed $value, int $position): ?string
    {
        if ($value === null || \is_int($value)) {
            return $value === null ? null : (string) $value;
        }
        try {
            return self::kind($oid) === self::BYTEA
                ? ByteaType::bytes($value)
                : ($this->types[$oid] ?? $this->type($oid))->encode($value);
        } catch (UnencodableException $reason) {
            throw InvalidParameterException::parameter(
                $position,
                $reason->phpType,
                $this->name($oid),
                $reason->reason,
                $reason->path,
            );
        }
    }

    /**
     * Encodes a row in COPY's text format, with its line end.
     *
     * @param list<int> $oids types of the columns
     * @param array<array-key, mixed> $row values in the order of the columns; keys are ignored
     * @param int $number number of the row, starting at 1
     *
     * @throws InvalidParameterException
     */
    public function copyRow(array $oids, #[\SensitiveParameter] array $row, int $number): string
    {
        if (\count($row) !== \count($oids)) {
            throw InvalidParameterException::columnCount($number, \count($row), \count($oids));
        }
        $line = [];
        foreach ($row as $value) {
            $oid = $oids[\count($line)];
            try {
                $line[] = match (true) {
                    $value === null => '\N',
                    \is_int($value) => (string) $value,
                    default => addcslashes(($this->types[$oid] ?? $this->type($oid))->encode($value), "\\\t\n\r"),
                };
            } catch (UnencodableException $reason) {
                throw InvalidParameterException::column(
                    $number,
                    \count($line) + 1,
                    $reason->phpType,
                    $this->name($oid),
                    $reason->reason,
                    $reason->path,
                );
            }
        }

        return implode("\t", $line) . "\n";
    }

    private static function isBuiltIn(int $oid): bool
    {
        return isset(BuiltInTypes::SCALARS[$oid])
            || isset(BuiltInTypes::ARRAYS[$oid])
            || isset(BuiltInTypes::RANGES[$oid])
            || isset(BuiltInTypes::MULTIRANGES[$oid]);
    }

    private function type(int $oid): Type
    {
        if (isset($this->types[$oid])) {
            return $this->types[$oid];
        }
        $this->types[$oid] = new ScalarType(self::TEXT); // ends the recursion if a type is its own component
        $type = $this->builtIn($oid) ?? $this->create($oid);
        if (self::isBuiltIn($oid) || isset($this->loaded[$oid])) {
            return $this->types[$oid] = $type;
        }
        unset($this->types[$oid]);

        return $type;
    }

    private function builtIn(int $oid): ?Type
    {
        return match (true) {
            isset(BuiltInTypes::SCALARS[$oid]) => $this->scalar($oid),
            isset(BuiltInTypes::ARRAYS[$oid]) => new ArrayType(
                $this->type(BuiltInTypes::ARRAYS[$oid]),
                BuiltInTypes::ARRAYS[$oid] === BuiltInTypes::BOX ? ';' : ',',
            ),
            isset(BuiltInTypes::RANGES[$oid]) => new RangeType($this->type(BuiltInTypes::RANGES[$oid][1])),
            isset(BuiltInTypes::MULTIRANGES[$oid]) => $this->multirange(BuiltInTypes::MULTIRANGES[$oid][1]),
            default => null,
        };
    }

    private function scalar(int $oid): Type
    {
        $kind = BuiltInTypes::SCALARS[$oid][0];

        return match ($kind) {
            self::INT, self::FLOAT => new ScalarType($kind, isNumber: true),
            self::BOOL => new ScalarType($kind),
            self::BYTEA => new ByteaType(),
            default => match ($oid) {
                114, 3802 => new JsonType($this->json),
                1082 => DateTimeType::date(),
                1114 => DateTimeType::timestamp(),
                1184 => DateTimeType::timestamptz(),
                1186 => new IntervalType(),
                1700 => new ScalarType(self::TEXT, isNumber: true),
                default => new ScalarType(self::TEXT),
            },
        };
    }

    private function create(int $oid): Type
    {
        [$kind, $base, $delimiter] = $this->loaded[$oid] ?? [null, 0, ','];

        return match ($kind) {
            'array' => new ArrayType($this->type($base), $delimiter),
            'domain' => $this->type($base),
            'range' => new RangeType($this->type($base)),
            'multirange' => $this->multirange($base),
            default => new ScalarType(self::TEXT),
        };
    }

    private function multirange(int $range): Type
    {
        $type = $this->type($range);

        return $type instanceof RangeType ? new MultirangeType($type) : $type;
    }

    private function name(int $oid): string
    {
        return match (true) {
            isset(BuiltInTypes::SCALARS[$oid]) => BuiltInTypes::SCALARS[$oid][1],
            isset(BuiltInTypes::ARRAYS[$oid]) => $this->name(BuiltInTypes::ARRAYS[$oid]) . '[]',
            default => BuiltInTypes::RANGES[$oid][0]
                ?? BuiltInTypes::MULTIRANGES[$oid][0]
                ?? $this->names[$oid]
                ?? "the type {$oid}",
        };
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

use Spindle\Postgres\Internal\Types\Types;

/** The columns of a result: their names, and how to decode their values. */
final readonly class Columns
{
    /** Kinds of values in binary format. A kind says how to decode a value. {@see Types} has further kinds. */
    public const INT4 = 10;
    public const INT8 = 11;
    public const FLOAT8 = 12;
    public const BYTES = 13;

    /** Kinds by type OID. Binary format is requested for these types, because it is smaller or faster to decode. */
    private const BINARY_KINDS = [17 => self::BYTES, 20 => self::INT8, 23 => self::INT4, 701 => self::FLOAT8];

    private const TEXT_OID = 25;

    /** @var list<int> kind of each column when all values are text: {@see Types::kind()} */
    public array $kinds;

    /** @var list<int> kind of each column when values have the formats of {@see $formats} */
    public array $binaryKinds;

    /** Format codes (text or binary) of the columns, encoded for the message Bind. */
    public string $formats;

    /** A name that two or more columns have; null when all names differ. */
    public ?string $duplicateName;

    /**
     * @param list<string> $names
     * @param list<int>    $oids
     */
    public function __construct(public array $names, public array $oids, public Types $types)
    {
        $this->kinds = array_map(Types::kind(...), $oids);
        $this->binaryKinds = array_map(
            static fn(int $oid, int $kind): int => self::BINARY_KINDS[$oid] ?? $kind,
            $oids,
            $this->kinds,
        );
        $formats = array_map(static fn(int $oid): int => isset(self::BINARY_KINDS[$oid]) ? 1 : 0, $oids);
        $this->formats = pack('n*', \count($formats), ...$formats);
        $unique = array_unique($names);
        $this->duplicateName = \count($unique) === \count($names)
            ? null
            : array_values(array_diff_key($names, $unique))[0];
    }

    /** Returns a copy that decodes neither JSON nor values that would become objects or arrays. They all stay text. */
    public function scalars(): self
    {
        $oids = array_map(
            static fn(int $oid, int $kind): int => $kind === Types::OTHER ? self::TEXT_OID : $oid,
            $this->oids,
            $this->kinds,
        );

        return new self($this->names, $oids, $this->types);
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

use Spindle\Postgres\Internal\Types\Types;

/** The columns of a result: their names, and how their values are read. */
final readonly class Columns
{
    /** Of values that come in binary format, beside {@see Types}' own kinds. */
    public const INT4 = 10;
    public const INT8 = 11;
    public const FLOAT8 = 12;
    public const BYTES = 13;

    /** By OID, what is faster to read in binary format, or smaller. */
    private const BINARY = [17 => self::BYTES, 20 => self::INT8, 23 => self::INT4, 701 => self::FLOAT8];

    /** @var list<int> what to do with each when all come as text, {@see Types::kind()} */
    public array $kinds;

    /** @var list<int> what to do with each when they come in the formats asked for */
    public array $binaryKinds;

    /** Formats, as Bind asks for them. */
    public string $formats;

    /** The name that two columns have; null when there is none. */
    public ?string $twice;

    /**
     * @param list<string> $names
     * @param list<int>    $oids
     */
    public function __construct(public array $names, public array $oids, public Types $types)
    {
        $this->kinds = array_map(Types::kind(...), $oids);
        $this->binaryKinds = array_map(static fn(int $oid, int $kind): int => self::BINARY[$oid] ?? $kind, $oids, $this->kinds);
        $formats = array_map(static fn(int $oid): int => isset(self::BINARY[$oid]) ? 1 : 0, $oids);
        $this->formats = pack('n*', \count($formats), ...$formats);
        $unique = array_unique($names);
        $this->twice = \count($unique) === \count($names) ? null : array_values(array_diff_key($names, $unique))[0];
    }
}

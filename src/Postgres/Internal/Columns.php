<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

use Spindle\Postgres\Internal\Types\Types;

/** The columns of a result: their names, and how their values are read. */
final readonly class Columns
{
    /** @var list<int> what to do with each, {@see Types::kind()} */
    public array $kinds;

    /** The name that two columns have; null when there is none. */
    public ?string $twice;

    /**
     * @param list<string> $names
     * @param list<int>    $oids
     */
    public function __construct(public array $names, public array $oids, public Types $types)
    {
        $this->kinds = array_map(Types::kind(...), $oids);
        $unique = array_unique($names);
        $this->twice = \count($unique) === \count($names) ? null : array_values(array_diff_key($names, $unique))[0];
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pgsql;

use Spindle\Postgres\Internal\Columns;
use Spindle\Postgres\Internal\SessionChanges;
use Spindle\Postgres\Internal\Types\Types;
use Spindle\Postgres\InvalidParameterException;

/** A statement that the server has prepared, or that it parses each time. */
final class PgsqlStatement
{
    /** The most bytes of values in one message, whose length is a signed 32-bit integer. */
    private const MAX_VALUES_BYTES = 0x7FFF_0000;

    /** Columns, known after the first result; null for a statement without rows. */
    public ?Columns $columns = null;

    /**
     * @param string $name '' for a statement that has to be parsed each time
     * @param bool $changesSession whether it may change the session or texts' meaning: {@see SessionChanges}
     * @param list<int>|null $parameters type OIDs; null while they are unknown
     */
    public function __construct(
        public readonly string $name,
        public readonly bool $changesSession,
        public ?array $parameters = null,
    ) {}

    /**
     * @param array<mixed> $values
     *
     * @return list<string|null> values in PostgreSQL's text format
     *
     * @throws InvalidParameterException
     */
    public function encode(#[\SensitiveParameter] array $values, Types $types): array
    {
        if ($this->parameters !== null && (\count($values) !== \count($this->parameters) || !array_is_list($values))) {
            throw InvalidParameterException::count(\count($values), \count($this->parameters));
        }
        $texts = [];
        $bytes = 0;
        foreach (array_values($values) as $index => $value) {
            $oid = $this->parameters[$index] ?? 0;
            $text = $types->encode($oid, $value, $index + 1);
            if ($text !== null) {
                $text = Types::kind($oid) === Types::BYTEA ? Types::hex($text) : $text;
                $bytes += \strlen($text);
            }
            $texts[] = $text;
        }

        return $bytes > self::MAX_VALUES_BYTES ? throw InvalidParameterException::tooLarge($bytes) : $texts;
    }
}

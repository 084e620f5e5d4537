<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pgsql;

use Spindle\Postgres\Internal\Columns;
use Spindle\Postgres\Internal\SessionChanges;
use Spindle\Postgres\Internal\Types\Types;
use Spindle\Postgres\InvalidParameterException;

/** A statement that the server has prepared or that is parsed at each execution. */
final class PgsqlStatement
{
    /** Maximum bytes of the values in one message. The length of a message is a signed 32-bit integer. */
    private const MAX_VALUES_BYTES = 0x7FFF_0000;

    /** Columns; null before the first result, if some types are unknown, or if the statement returns no rows. */
    public ?Columns $columns = null;

    /**
     * @param string $name '' for a statement that is parsed at each execution
     * @param bool $changesSession whether it may change the session or the meaning of SQL texts: {@see SessionChanges}
     * @param list<int>|null $parameterTypes type OIDs of the parameters; null while they are unknown
     */
    public function __construct(
        public readonly string $name,
        public readonly bool $changesSession,
        public ?array $parameterTypes = null,
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
        if (
            $this->parameterTypes !== null
            && (\count($values) !== \count($this->parameterTypes) || !array_is_list($values))
        ) {
            throw InvalidParameterException::count(\count($values), \count($this->parameterTypes));
        }
        $texts = [];
        $bytes = 0;
        foreach (array_values($values) as $index => $value) {
            $oid = $this->parameterTypes[$index] ?? 0;
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

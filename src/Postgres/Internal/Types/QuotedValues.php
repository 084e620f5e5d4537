<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Types;

use Spindle\Postgres\InvalidParameterException;
use Spindle\Postgres\ProtocolException;
use Spindle\Postgres\Range;

/** Values of parameters as messages of the server may quote them: as they were sent, and what they are made of. */
final class QuotedValues
{
    /**
     * @param list<int>    $oids   of the parameters' types, as far as they are known
     * @param array<mixed> $values
     *
     * @return list<list<string>> of each the text that was sent, and then its parts
     */
    public static function of(Types $types, array $oids, #[\SensitiveParameter] array $values): array
    {
        $quoted = [];
        foreach (array_values($values) as $index => $value) {
            $quoted[] = self::texts($types, $oids[$index] ?? 0, $value, $index + 1);
        }

        return $quoted;
    }

    /** @return list<string> */
    private static function texts(Types $types, int $oid, #[\SensitiveParameter] mixed $value, int $position): array
    {
        try {
            $text = $types->encode($oid, $value, $position);
        } catch (InvalidParameterException) {
            return [];
        }
        if ($text === null) {
            return [];
        }
        if (Types::kind($oid) === Types::BYTEA) {
            return [$text, Types::hex($text)];
        }
        try {
            $parts = self::parts($types->decode($oid, $text));
        } catch (ProtocolException) {
            $parts = []; // the server alone can read it
        }

        return [$text, ...$parts, ...self::parts($value)];
    }

    /** @return list<string> */
    private static function parts(#[\SensitiveParameter] mixed $value): array
    {
        return match (true) {
            \is_array($value) => array_merge(...array_map(self::parts(...), array_values($value))),
            \is_string($value) => self::escaped($value),
            \is_int($value), \is_float($value) => [(string) $value],
            $value instanceof \BackedEnum => [(string) $value->value],
            $value instanceof \DateTimeInterface => self::moments(\DateTimeImmutable::createFromInterface($value)),
            $value instanceof Range => [...self::parts($value->lower), ...self::parts($value->upper)],
            default => [],
        };
    }

    /** @return list<string> as it stands by itself, within an array, and within JSON */
    private static function escaped(#[\SensitiveParameter] string $text): array
    {
        $json = json_encode($text, \JSON_UNESCAPED_SLASHES | \JSON_UNESCAPED_UNICODE);

        return array_values(array_unique([$text, addcslashes($text, '"\\'), $json === false ? $text : substr($json, 1, -1)]));
    }

    /** @return list<string> */
    private static function moments(#[\SensitiveParameter] \DateTimeImmutable $time): array
    {
        return [$time->format('Y-m-d H:i:s'), $time->setTimezone(new \DateTimeZone('UTC'))->format('Y-m-d H:i:s'), $time->format('Y-m-d')];
    }
}

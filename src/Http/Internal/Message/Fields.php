<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Message;

/**
 * Header fields as an array. The key is the name in lower case; the value is the original name and the field's values.
 *
 * @phpstan-type FieldMap array<array-key, array{string, list<string>}>
 */
final class Fields
{
    /**
     * @param string $lines valid field lines, each with its CRLF
     *
     * @return FieldMap
     */
    public static function parse(string $lines): array
    {
        preg_match_all('/^([^:]++):[ \t]*+([^\r\n]*+)\r$/m', $lines, $matches, \PREG_SET_ORDER);
        $fields = [];
        foreach ($matches as [, $name, $value]) {
            $key = strtolower($name);
            $fields[$key] ??= [$name, []];
            $fields[$key][1][] = rtrim($value, " \t");
        }

        return $fields;
    }

    /**
     * @param list<string> $values values of all field lines with the same name
     *
     * @return non-empty-list<string> members of the comma-separated list in these lines, in lower case: RFC 9110, 5.6.1
     */
    public static function members(array $values): array
    {
        return array_map(trim(...), explode(',', strtolower(implode(',', $values))));
    }

    /**
     * Checks header fields, and merges those whose names differ only in case.
     *
     * @param array<array-key, mixed> $headers values by name
     *
     * @return FieldMap
     *
     * @throws \InvalidArgumentException
     */
    public static function of(#[\SensitiveParameter] array $headers): array
    {
        $fields = [];
        foreach ($headers as $name => $values) {
            // PHP converts a name of digits to an int key. Arrays from getHeaders() can have such a key, with a list of
            // values. An int key with a single value is refused, because it may be the index of an entry without name.
            if (\is_int($name) && !\is_array($values)) {
                throw new \InvalidArgumentException(
                    "A header must be set by its name, but an entry has no name or the name {$name}."
                        . " Write ['Name' => 'value'], not ['Name: value']",
                );
            }
            $name = self::name($name);
            $key = strtolower($name);
            $fields[$key] = [$fields[$key][0] ?? $name, [...$fields[$key][1] ?? [], ...self::values($name, $values)]];
        }

        return $fields;
    }

    /**
     * Refuses arrays with string keys as values. Such arrays are options of another client, such as Guzzle's `query`.
     *
     * @param array<array-key, mixed> $headers
     *
     * @return FieldMap
     */
    public static function ofCall(#[\SensitiveParameter] array $headers): array
    {
        foreach ($headers as $name => $values) {
            if (\is_array($values) && \is_string(array_key_first($values))) {
                $label = self::name($name);
                throw new \InvalidArgumentException(
                    "The header {$label} must be a string or a list of strings, not an array with names. The headers"
                        . ' have no options such as json or query: write RequestBody::json() or ?name=value',
                );
            }
        }

        return self::of($headers);
    }

    /** @throws \InvalidArgumentException when the name is no token: RFC 9110, 5.1 */
    public static function name(int|string $name): string
    {
        $name = (string) $name; // PHP converts an array key of digits to an int
        if (preg_match('@^' . HeadReader::TOKEN . '$@D', $name) !== 1) {
            $shown = addcslashes(substr($name, 0, 80), "\0..\37\"\\\177..\377");

            throw new \InvalidArgumentException("A header can not have the name \"{$shown}\"");
        }

        return $name;
    }

    /**
     * Checks the values of a field, and removes spaces and tabs around them.
     *
     * @param mixed $values a string or number, or an array of these
     *
     * @return non-empty-list<string>
     *
     * @throws \InvalidArgumentException when there is no value, or a value has another type or a control character
     */
    public static function values(string $name, #[\SensitiveParameter] mixed $values): array
    {
        $checked = [];
        foreach (\is_array($values) ? $values : [$values] as $value) {
            if (!\is_string($value) && !\is_int($value) && !\is_float($value)) {
                throw new \InvalidArgumentException(
                    "The header {$name} must be a string or a list of strings, not " . get_debug_type($value),
                );
            }
            $value = trim((string) $value, " \t");
            if (preg_match('@^' . HeadReader::VALUE . '$@D', $value) !== 1) {
                throw new \InvalidArgumentException(
                    "The header {$name} can not have a control character: its value has " . self::fault($value),
                );
            }
            $checked[] = $value;
        }

        return $checked !== [] ? $checked : throw new \InvalidArgumentException("The header {$name} has no value");
    }

    /** Describes the first control character. Does not show the value itself, which may be secret. */
    private static function fault(#[\SensitiveParameter] string $value): string
    {
        $offset = strcspn($value, implode('', array_map(\chr(...), [...range(0, 8), ...range(10, 31), 127])));
        $what = match ($value[$offset]) {
            "\n" => 'a line feed',
            "\r" => 'a carriage return',
            "\0" => 'a NUL byte',
            default => \sprintf('the byte 0x%02X', \ord($value[$offset])),
        };
        $isAtEnd = rtrim(substr($value, $offset)) === '';

        return $what . ($isAtEnd ? ' at the end, which trim() removes' : " at offset {$offset}");
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Types;

use Spindle\Postgres\Internal\ServerError;
use Spindle\Postgres\InvalidParameterException;
use Spindle\Postgres\ProtocolException;
use Spindle\Postgres\Range;

/** Finds the parameter values, or parts of them, that a server's message quotes. There may be millions of others. */
final class QuotedValues
{
    /** The longest text in bytes that is decoded to find its parts. */
    private const MAX_DECODED_BYTES = 0x10_0000;

    /** Bytes that identify the beginning of a value at the end of a truncated message. */
    private const PREFIX_BYTES = 64;

    private function __construct(private readonly Types $types, private readonly string $message) {}

    /**
     * @param list<int> $oids types of the parameters, as far as they are known
     * @param array<mixed> $values
     *
     * @return list<list<string>> for each value its text, '' if not quoted, and then its quoted parts
     */
    public static function of(
        Types $types,
        array $oids,
        #[\SensitiveParameter]
        array $values,
        #[\SensitiveParameter]
        string $message,
    ): array {
        $self = new self($types, $message);
        $quoted = [];
        foreach (array_values($values) as $index => $value) {
            $quoted[] = $self->texts($oids[$index] ?? 0, $value, $index + 1);
        }

        return $quoted;
    }

    /** @return array<string, mixed> */
    public function __debugInfo(): array
    {
        return [];
    }

    /** @return list<string> */
    private function texts(int $oid, #[\SensitiveParameter] mixed $value, int $position): array
    {
        try {
            $text = $this->types->encode($oid, $value, $position);
        } catch (InvalidParameterException) {
            return [];
        }
        if ($text === null) {
            return [];
        }
        $texts = [$this->found($text)];
        if (Types::kind($oid) === Types::BYTEA) {
            return [...$texts, $this->found(Types::hex(substr($text, 0, ServerError::MAX_FIELD_BYTES)))];
        }
        try {
            $read = \strlen($text) > self::MAX_DECODED_BYTES ? null : $this->types->decode($oid, $text);
        } catch (ProtocolException) {
            $read = null; // only the server can read it
        }
        foreach ([$read, $value] as $one) {
            foreach (self::parts($one) as $part) {
                $found = $this->found($part);
                if ($found !== '') {
                    $texts[] = $found;
                }
            }
        }

        return $texts;
    }

    /** Returns the part of a text that the message contains: all, or its beginning before a truncation. */
    private function found(#[\SensitiveParameter] string $text): string
    {
        if (str_contains($this->message, $text)) {
            return $text;
        }
        $isCut = \strlen($this->message) >= ServerError::MAX_FIELD_BYTES && \strlen($text) > self::PREFIX_BYTES;

        return $isCut ? (string) strstr($this->message, substr($text, 0, self::PREFIX_BYTES)) : '';
    }

    /** @return iterable<string> */
    private static function parts(#[\SensitiveParameter] mixed $value): iterable
    {
        if (\is_array($value)) {
            foreach ($value as $part) {
                yield from self::parts($part);
            }

            return;
        }
        yield from match (true) {
            \is_string($value) => self::escaped($value),
            \is_int($value), \is_float($value) => [(string) $value],
            $value instanceof \BackedEnum => [(string) $value->value],
            $value instanceof \DateTimeInterface => self::moments(\DateTimeImmutable::createFromInterface($value)),
            $value instanceof Range => [...self::parts($value->lower), ...self::parts($value->upper)],
            default => [],
        };
    }

    /** @return list<string> the text itself, as an array element, and within JSON */
    private static function escaped(#[\SensitiveParameter] string $text): array
    {
        $text = substr($text, 0, ServerError::MAX_FIELD_BYTES + 1); // no message contains more
        $json = json_encode($text, \JSON_UNESCAPED_SLASHES | \JSON_UNESCAPED_UNICODE | \JSON_INVALID_UTF8_IGNORE);

        return array_values(array_unique(
            [$text, addcslashes($text, '"\\'), $json === false ? $text : substr($json, 1, -1)],
        ));
    }

    /** @return list<string> */
    private static function moments(#[\SensitiveParameter] \DateTimeImmutable $time): array
    {
        return [
            $time->format('Y-m-d H:i:s'),
            $time->setTimezone(new \DateTimeZone('UTC'))->format('Y-m-d H:i:s'),
            $time->format('Y-m-d'),
        ];
    }
}

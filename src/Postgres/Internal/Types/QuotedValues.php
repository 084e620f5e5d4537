<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Types;

use Spindle\Postgres\Internal\ServerError;
use Spindle\Postgres\ProtocolException;
use Spindle\Postgres\Range;

/** Finds parameter values, or parts of them, in an error message of the server, so that the client can hide them. */
final class QuotedValues
{
    /** Maximum bytes of a value that is decoded in order to search for its parts. */
    private const MAX_DECODED_BYTES = 0x10_0000;

    /** A truncated message may end within a value. So the client also searches for this many first bytes of a value. */
    private const PREFIX_BYTES = 64;

    private function __construct(private readonly Types $types, private readonly string $message) {}

    /**
     * @param list<int> $oids types of the parameters, as far as known
     * @param array<mixed> $values
     *
     * @return list<list<string>> one list per value. The first item is the value's text, or '' if the message does not
     *     contain this text. The other items are parts or other notations of the value that the message contains. The
     *     list is empty for null, and for a value that can't be encoded
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
        } catch (\Throwable) { // a method of the value, such as __toString(), may fail now
            return [];
        }
        if ($text === null) {
            return [];
        }
        $texts = [$this->quotedPart($text)];
        if (Types::kind($oid) === Types::BYTEA) {
            return [...$texts, $this->quotedPart(Types::hex(substr($text, 0, ServerError::MAX_FIELD_BYTES)))];
        }
        try {
            $read = \strlen($text) > self::MAX_DECODED_BYTES ? null : $this->types->decode($oid, $text);
        } catch (ProtocolException) {
            $read = null; // the text has a notation that only the server can read
        }
        foreach ([$read, $value] as $one) {
            foreach (self::parts($one) as $part) {
                $found = $this->quotedPart($part);
                if ($found !== '') {
                    $texts[] = $found;
                }
            }
        }

        return $texts;
    }

    /** Returns the text if the message contains it, the text's beginning if a truncated message ends with it, or ''. */
    private function quotedPart(#[\SensitiveParameter] string $text): string
    {
        if (str_contains($this->message, $text)) {
            return $text;
        }
        $isTruncated = \strlen($this->message) >= ServerError::MAX_FIELD_BYTES && \strlen($text) > self::PREFIX_BYTES;

        return $isTruncated ? (string) strstr($this->message, substr($text, 0, self::PREFIX_BYTES)) : '';
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
            \is_int($value) => [(string) $value],
            \is_float($value) => [Scalar::float($value)],
            $value instanceof \BackedEnum => [(string) $value->value],
            $value instanceof \DateTimeInterface => self::timeTexts(\DateTimeImmutable::createFromInterface($value)),
            $value instanceof Range => [...self::parts($value->lower), ...self::parts($value->upper)],
            default => [],
        };
    }

    /** @return list<string> the text unchanged, escaped as an array element, and escaped as JSON */
    private static function escaped(#[\SensitiveParameter] string $text): array
    {
        $text = substr($text, 0, ServerError::MAX_FIELD_BYTES + 1); // a message contains no more of the text
        $json = json_encode($text, \JSON_UNESCAPED_SLASHES | \JSON_UNESCAPED_UNICODE | \JSON_INVALID_UTF8_IGNORE);

        return array_values(array_unique(
            [$text, addcslashes($text, '"\\'), $json === false ? $text : substr($json, 1, -1)],
        ));
    }

    /** @return list<string> */
    private static function timeTexts(#[\SensitiveParameter] \DateTimeImmutable $time): array
    {
        return [
            $time->format('Y-m-d H:i:s'),
            $time->setTimezone(new \DateTimeZone('UTC'))->format('Y-m-d H:i:s'),
            $time->format('Y-m-d'),
        ];
    }
}

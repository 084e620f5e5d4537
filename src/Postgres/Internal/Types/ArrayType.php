<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Types;

use Spindle\Postgres\ProtocolException;

/**
 * Converts arrays with up to six dimensions to and from nested lists. Lower bounds of indexes are dropped. If an
 * element can be a list itself (JSON, multiranges, domains over arrays), only one dimension is supported, because a
 * nested list is then the value of one element.
 *
 * @see https://www.postgresql.org/docs/current/arrays.html#ARRAYS-IO
 */
final readonly class ArrayType implements ListValuedType
{
    /** Maximum number of dimensions that the server supports. */
    private const MAX_DIMENSIONS = 6;

    /** @param non-empty-string $delimiter character between two elements: a comma for most element types */
    public function __construct(private Type $element, private string $delimiter = ',') {}

    /** @return list<mixed> */
    public function decode(#[\SensitiveParameter] string $text): array
    {
        if (($text[0] ?? '') === '[') { // bounds, as in [2:3]={a,b}
            $text = substr($text, ((int) strpos($text, '=')) + 1);
        }
        if (($text[0] ?? '') !== '{') {
            throw self::malformed();
        }
        $at = 0;
        $list = $this->read($text, $at, 1);

        return $at === \strlen($text) ? $list : throw self::malformed();
    }

    public function encode(#[\SensitiveParameter] mixed $value): string
    {
        return \is_array($value) ? $this->write($value, $this->dimensions($value)) : Scalar::text($value);
    }

    /**
     * @param int $at offset of the opening brace; this method sets it to the offset after the closing brace
     *
     * @return list<mixed>
     */
    private function read(#[\SensitiveParameter] string $text, int &$at, int $dimension): array
    {
        if ($dimension > self::MAX_DIMENSIONS) {
            throw self::malformed();
        }
        if ($dimension > 1 && $this->element instanceof ListValuedType) {
            throw ProtocolException::unreadableValue(
                'array',
                'it has several dimensions, and its elements may be lists themselves. Select the value as text'
                    . ' instead, such as column::text',
            );
        }
        $length = strcspn($text, '{}"\\', $at + 1);
        if (($text[$at + 1 + $length] ?? '') === '}') { // most arrays: neither quotes nor nested arrays
            $list = $length === 0 ? [] : $this->plain(explode($this->delimiter, substr($text, $at + 1, $length)));
            $at += $length + 2;

            return $list;
        }
        $list = [];
        do {
            $list[] = match ($text[++$at] ?? '') {
                '{' => $this->read($text, $at, $dimension + 1),
                '"' => $this->element->decode(self::quoted($text, $at)),
                default => $this->unquoted($text, $at),
            };
        } while (($text[$at] ?? '') === $this->delimiter);

        return ($text[$at++] ?? '') === '}' ? $list : throw self::malformed();
    }

    /**
     * @param list<string> $texts elements that are not in quotes
     *
     * @return list<mixed>
     */
    private function plain(#[\SensitiveParameter] array $texts): array
    {
        $list = [];
        foreach ($texts as $text) {
            $list[] = match ($text) {
                'NULL' => null,
                '' => throw self::malformed(),
                default => $this->element->decode($text),
            };
        }

        return $list;
    }

    private static function quoted(#[\SensitiveParameter] string $text, int &$at): string
    {
        $start = ++$at;
        $at += strcspn($text, '"\\', $at);
        $escaped = false;
        while (($text[$at] ?? '') === '\\' && isset($text[$at + 2])) {
            $escaped = true;
            $at += 2;
            $at += strcspn($text, '"\\', $at);
        }
        if (($text[$at++] ?? '') !== '"') {
            throw self::malformed();
        }
        $element = substr($text, $start, $at - 1 - $start);

        return $escaped ? stripslashes($element) : $element;
    }

    private function unquoted(#[\SensitiveParameter] string $text, int &$at): mixed
    {
        $start = $at;
        $at += strcspn($text, "{$this->delimiter}{}\"\\", $at);

        return $this->plain([substr($text, $start, $at - $start)])[0];
    }

    /** @param array<mixed> $value nested lists; the first element of a list shows whether there is another dimension */
    private function dimensions(#[\SensitiveParameter] array $value): int
    {
        $dimensions = 1;
        while (!$this->element instanceof ListValuedType && \is_array($value = reset($value))) {
            if (++$dimensions > self::MAX_DIMENSIONS) {
                throw UnencodableException::of($value, 'an array can have at most six dimensions');
            }
        }

        return $dimensions;
    }

    /** @param array<mixed> $value */
    private function write(#[\SensitiveParameter] array $value, int $dimensions): string
    {
        if (!array_is_list($value)) {
            throw UnencodableException::of($value, 'it is not a list');
        }
        $texts = [];
        foreach ($value as $index => $element) {
            try {
                $texts[] = match (true) {
                    $dimensions === 1 => $this->element($element),
                    \is_array($element) => $this->write($element, $dimensions - 1),
                    default => throw UnencodableException::of($element, 'other elements of its array are lists'),
                };
            } catch (UnencodableException $failure) {
                throw $failure->within($index);
            }
        }

        // Before version 17, the server accepts no empty array within an array. So {{},{}} is sent as {}.
        return $dimensions > 1 && ($texts[0] ?? '') === '{}' && array_unique($texts) === ['{}']
            ? '{}'
            : '{' . implode($this->delimiter, $texts) . '}';
    }

    private function element(#[\SensitiveParameter] mixed $element): string
    {
        return match (true) {
            $element === null => 'NULL',
            \is_int($element) => (string) $element,
            default => '"' . addcslashes($this->element->encode($element), '"\\') . '"',
        };
    }

    private static function malformed(): ProtocolException
    {
        return ProtocolException::unreadableValue('array');
    }
}

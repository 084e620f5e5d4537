<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Form;

use Spindle\Http\HttpException;

/**
 * Stores values by names such as "a[b][]" in nested arrays, as PHP does for $_POST. If several values have the same
 * name, the last one is kept. Spaces and dots before the first bracket become underscores. If a pair of brackets is
 * followed by other text, the rest of the name is ignored. A value whose name begins with a bracket is ignored.
 *
 * Three details differ from $_POST. Too many brackets in a name are an error, and so is a NUL. "a[]" gets the key that
 * PHP code would use for `$a[] = 1`. Before PHP 8.3, this key is 0 if all existing keys of "a" are negative, although
 * the key in $_POST is the largest of these keys plus 1.
 */
final class NameTree
{
    /** Brackets around one white-space character count as empty, as in PHP. Two such characters are a key. */
    private const KEY_PATTERN = '/\G\[(?:\s?+\]|([^\]]++)\])/';

    /** @var array<mixed> */
    public array $values = [];

    /** @param int $depth maximum number of opening brackets in a name */
    public function __construct(private readonly int $depth) {}

    /** @throws HttpException */
    public function set(string $name, mixed $value): void
    {
        $name = ltrim($name, ' ');
        $keys = $this->keys($name);
        if ($keys === []) {
            return;
        }
        $node = &$this->values;
        foreach ($keys as $key) {
            if (!\is_array($node)) {
                $node = [];
            }
            $key ??= self::append($node);
            if ($key === null || self::isDisguised((string) $key, $name)) {
                return;
            }
            $node = &$node[$key];
        }
        $node = $value;
    }

    /** @return list<string|null> the keys of a name, with null for the next free number; empty for a name to ignore */
    private function keys(string $name): array
    {
        if (str_contains($name, "\0")) {
            throw BodyErrors::malformed('The name of a field contains a NUL byte');
        }
        if (substr_count($name, '[') > $this->depth) {
            throw BodyErrors::tooMuch("The name of a field has more than {$this->depth} brackets");
        }
        $open = strpos($name, '[');
        $first = strtr($open === false ? $name : substr($name, 0, $open), ' .', '__');
        if ($first === '') {
            return [];
        }
        if ($open === false) {
            return [$first];
        }

        return preg_match_all(self::KEY_PATTERN, $name, $match, \PREG_UNMATCHED_AS_NULL, $open) === 0
            ? [$first . strtr(substr($name, $open), ' .[', '___')]
            : [$first, ...$match[1]];
    }

    /**
     * @param array<mixed> $values
     *
     * @return int|string|null key of the new element; null if no element can be appended, because PHP_INT_MAX is a key
     */
    private static function append(array &$values): int|string|null
    {
        if (\array_key_exists(\PHP_INT_MAX, $values)) {
            return null;
        }
        $values[] = null;

        return array_key_last($values);
    }

    /** Returns whether a key begins with __Host- or __Secure-, but the name does not. PHP drops such values, too. */
    private static function isDisguised(string $key, string $name): bool
    {
        return preg_match('/^__(?:Host|Secure)-/', $key, $match) === 1 && !str_starts_with($name, $match[0]);
    }
}

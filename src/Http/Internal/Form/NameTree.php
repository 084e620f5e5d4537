<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Form;

use Spindle\Http\HttpException;

/**
 * Values by names such as "a[b][]", in the arrays that PHP makes of them: the last of several values stays, blanks and
 * dots before the first bracket become underscores, what follows the last pair of brackets does not count, and a name
 * without anything before its first bracket is no name.
 *
 * It differs in three ways: too many brackets are an error, so is a NUL, and before PHP 8.3 "a[]" behind negative keys
 * only counts from 0.
 */
final class NameTree
{
    /** A blank alone between brackets is nothing, other than two. */
    private const KEY = '/\G\[(?:\s?+\]|([^\]]++)\])/';

    /** @var array<mixed> */
    private array $tree = [];

    /** @param int $depth brackets that a name may have */
    public function __construct(private readonly int $depth) {}

    /** @throws HttpException */
    public function set(string $name, mixed $value): void
    {
        $name = ltrim($name, ' ');
        $keys = $this->keys($name);
        if ($keys === []) {
            return;
        }
        $node = &$this->tree;
        foreach ($keys as $key) {
            if (!\is_array($node)) {
                $node = [];
            }
            $key ??= self::next($node);
            if ($key === null || self::isDisguised((string) $key, $name)) {
                return;
            }
            $node = &$node[$key];
        }
        $node = $value;
    }

    /** @return array<mixed> */
    public function values(): array
    {
        return $this->tree;
    }

    /**
     * @return list<string|null> null for the next free number; none for what is no name
     *
     * @throws HttpException
     */
    private function keys(string $name): array
    {
        if (str_contains($name, "\0")) {
            throw Refusal::malformed('The name of a field has a NUL in it');
        }
        if (substr_count($name, '[') > $this->depth) {
            throw Refusal::tooMuch("The name of a field has more than {$this->depth} brackets");
        }
        $open = strpos($name, '[');
        $first = strtr($open === false ? $name : substr($name, 0, $open), ' .', '__');
        if ($first === '') {
            return [];
        }
        if ($open === false) {
            return [$first];
        }

        return preg_match_all(self::KEY, $name, $match, \PREG_UNMATCHED_AS_NULL, $open) === 0
            ? [$first . strtr(substr($name, $open), ' .[', '___')]
            : [$first, ...$match[1]];
    }

    /**
     * @param array<mixed> $values
     *
     * @return int|string|null null when the last number that there is has been taken
     */
    private static function next(array &$values): int|string|null
    {
        if (\array_key_exists(\PHP_INT_MAX, $values)) {
            return null;
        }
        $values[] = null;

        return array_key_last($values);
    }

    /** Whether a key has one of the prefixes that mean something in the names of cookies, and the name as it was sent has not. */
    private static function isDisguised(string $key, string $name): bool
    {
        return preg_match('/^__(?:Host|Secure)-/', $key, $match) === 1 && !str_starts_with($name, $match[0]);
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

use Spindle\Cli\Internal\UsageException;

/** Replacement strings of GNU parallel, as -I and similar options spell them, and {NAME} for named columns. */
final class ReplacementStrings
{
    private const DEFAULTS = [
        '' => '{}',
        '.' => '{.}',
        '/' => '{/}',
        '//' => '{//}',
        '/.' => '{/.}',
        Replacement::SEQUENCE => '{#}',
        Replacement::SLOT => '{%}',
    ];

    /** Replacement strings of GNU parallel that are not supported, including those of --plus: see parallel(1). */
    private const UNSUPPORTED_PATTERN = '~\{(?:-?0\d*(?:/\.|//|/|\.)?|-?\d+\s[^}]*|/?\.{2,3}|\+(?:/|\.{1,3})|0[#%]'
        . '|\#\#|=.*?=)\}~s';

    private const NAME_PATTERN = '~\{\w[\w -]*(?://|/\.|/|\.)?\}~';

    /** @var array<array-key, string> {@see Replacement::$part}, by replacement string: the value of key {.} is '.' */
    private readonly array $parts;

    /** @var array<string, string> part, by the text after a position or name: .} in {1.}, or z} in {1z} with -I {z} */
    private readonly array $endings;

    /** @var array<array-key, int> position of each column, by name */
    private readonly array $columns;

    private readonly bool $hasHeader;

    /**
     * @param array<array-key, string> $spellings spellings that replace the default ones, by {@see Replacement::$part}
     * @param list<string>             $columns   names of the columns; an empty name can't be used
     *
     * @throws UsageException when two replacement strings have the same spelling
     */
    public function __construct(array $spellings = [], array $columns = [])
    {
        $texts = array_map(strval(...), $spellings + self::DEFAULTS);
        foreach (array_diff_assoc($texts, array_unique($texts)) as $text) {
            throw new UsageException(
                "two replacement strings are '{$text}'; give other values to -I, --er, --bnr, --dnr, --bner,"
                    . ' --seqreplace and --slotreplace',
            );
        }
        $this->parts = array_flip($texts);
        $endings = [];
        foreach ($texts as $part => $text) {
            if ($text[0] === '{') {
                $endings[substr($text, 1)] = (string) $part;
            }
        }
        uksort($endings, self::longestFirst(...));
        $this->endings = $endings;
        $this->hasHeader = $columns !== [];
        $this->columns = array_filter(
            array_map(static fn(int $index): int => $index + 1, array_flip(array_reverse($columns, true))),
            static fn(int|string $name): bool => $name !== '',
            \ARRAY_FILTER_USE_KEY,
        );
    }

    public function isIn(string $text): bool
    {
        return preg_match($this->pattern($text), $text) === 1;
    }

    public function usesPosition(string $text): bool
    {
        $replacements = array_filter($this->split($text), static fn($part): bool => $part instanceof Replacement);

        return array_filter(array_column($replacements, 'position'), \is_int(...)) !== [];
    }

    /** Returns an unsupported replacement string of GNU parallel in a text, such as {1#}; null if there is none. */
    public function unsupportedIn(string $text): ?string
    {
        foreach ($this->split($text) as $part) {
            if ($part instanceof Replacement && $part->isNumber() && $part->position !== null) {
                return $part->text;
            }
        }
        $rest = (string) preg_replace($this->pattern($text), ' ', $text);

        return preg_match(self::UNSUPPORTED_PATTERN, $rest, $match) === 1 ? $match[0] : null;
    }

    /** Returns the first {NAME} that names no column; null if there is none, or if there is no header. */
    public function unknownColumnIn(string $text): ?string
    {
        $rest = (string) preg_replace($this->pattern($text), ' ', $text);

        return $this->hasHeader && preg_match(self::NAME_PATTERN, $rest, $match) === 1 ? $match[0] : null;
    }

    public function removeFrom(string $text): string
    {
        return (string) preg_replace($this->pattern($text), '', $text);
    }

    public function forValues(): string
    {
        return (string) array_search('', $this->parts, true);
    }

    /** @return non-empty-list<string|Replacement> texts at even indexes, replacements at odd ones; a text can be '' */
    public function split(string $text): array
    {
        $pattern = $this->pattern($text);
        $parts = [];
        $at = 0;
        while (preg_match($pattern, $text, $match, \PREG_OFFSET_CAPTURE, $at) === 1) {
            [[$found, $offset]] = $match;
            $parts[] = substr($text, $at, $offset - $at);
            $parts[] = $this->replacement($found, $match[2][0] ?? '', $match[3][0] ?? '');
            $at = $offset + \strlen($found);
        }

        return [...$parts, substr($text, $at)];
    }

    /**
     * Returns the pattern that finds replacement strings in a text. The pattern has only the names of columns that the
     * text can contain, because PCRE refuses a pattern with thousands of names.
     *
     * @throws UsageException when PCRE refuses the pattern
     */
    private function pattern(string $text): string
    {
        $spellings = array_map(strval(...), array_keys($this->parts));
        usort($spellings, self::longestFirst(...));
        $names = array_filter(
            array_map(strval(...), array_keys($this->columns)),
            static fn(string $name): bool => str_contains($text, "{{$name}"),
        );
        $endings = array_map(strval(...), array_keys($this->endings));
        $pattern = '~(' . implode('|', array_map(self::quoted(...), $spellings)) . ')|\{(?|(-?[1-9]\d{0,8})('
            . implode('|', ['(?!)', ...array_map(self::quoted(...), $endings)]) . ')'
            . '|(' . implode('|', ['(?!)', ...array_map(self::quoted(...), $names)]) . ')((?://|/\.|/|\.|)\}))~';

        return @preg_match($pattern, '') === false
            ? throw new UsageException('the replacement strings of the command are too long; give shorter ones')
            : $pattern;
    }

    private function replacement(string $text, string $column, string $ending): Replacement
    {
        return $column === ''
            ? new Replacement($text, (string) $this->parts[$text])
            : new Replacement(
                $text,
                $this->endings[$ending] ?? substr($ending, 0, -1),
                $this->columns[$column] ?? (int) $column,
            );
    }

    private static function longestFirst(int|string $one, int|string $other): int
    {
        return \strlen((string) $other) <=> \strlen((string) $one);
    }

    private static function quoted(string $text): string
    {
        return preg_quote($text, '~');
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

/**
 * The replacement strings of a run: those of GNU parallel, with other spellings on demand, and those of columns that
 * have names.
 */
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

    /** Replacement strings of GNU parallel that are not supported, including those of its --plus: see parallel(1). */
    private const UNSUPPORTED_PATTERN = '~\{(?:-?0\d*(?:/\.|//|/|\.)?|-?\d+\s[^}]*|/?\.{2,3}|\+(?:/|\.{1,3})|0[#%]'
        . '|\#\#|=.*?=)\}~s';

    private readonly string $pattern;

    /** @var array<array-key, string> part by spelling */
    private readonly array $parts;

    /** @var array<array-key, int> position by name of a column */
    private readonly array $columns;

    /**
     * @param array<array-key, string> $spellings by part, for those that differ from the default
     * @param list<string>             $columns   names of the columns; an empty name can't be used
     */
    public function __construct(array $spellings = [], array $columns = [])
    {
        $this->parts = array_flip(array_map(strval(...), $spellings + self::DEFAULTS));
        $this->columns = array_filter(
            array_map(static fn(int $index): int => $index + 1, array_flip(array_reverse($columns, true))),
            static fn(int|string $name): bool => $name !== '',
            \ARRAY_FILTER_USE_KEY,
        );
        $texts = array_map(strval(...), array_keys($this->parts));
        usort($texts, static fn(string $one, string $other): int => \strlen($other) <=> \strlen($one));
        // GNU parallel has no positions when -I gives another spelling to {}.
        $positions = [
            ...(isset($spellings['']) ? [] : ['-?[1-9]\d{0,8}']),
            ...array_map(self::quoted(...), array_keys($this->columns)),
        ];
        $this->pattern = '~(' . implode('|', array_map(self::quoted(...), $texts)) . ')'
            . ($positions === [] ? '' : '|\{(' . implode('|', $positions) . ')(' . '//|/\.|/|\.|)\}') . '~';
    }

    public function isIn(string $text): bool
    {
        return preg_match($this->pattern, $text) === 1;
    }

    /** Returns whether a text has the position of a value, such as {1}. */
    public function hasPosition(string $text): bool
    {
        foreach ($this->split($text) as $part) {
            if ($part instanceof Replacement && $part->position !== null) {
                return true;
            }
        }

        return false;
    }

    /** Returns the first replacement string of GNU parallel in a text that is not supported; null for none. */
    public function unsupportedIn(string $text): ?string
    {
        $rest = (string) preg_replace($this->pattern, ' ', $text);

        return preg_match(self::UNSUPPORTED_PATTERN, $rest, $match) === 1 ? $match[0] : null;
    }

    /** Returns a text without its replacement strings. */
    public function removedFrom(string $text): string
    {
        return (string) preg_replace($this->pattern, '', $text);
    }

    /** Returns the replacement string for all values. */
    public function forValues(): string
    {
        return (string) array_search('', $this->parts, true);
    }

    /**
     * @return non-empty-list<string|Replacement> texts at even indexes, which can be empty, and replacements between
     *                                            them
     */
    public function split(string $text): array
    {
        $parts = [];
        $at = 0;
        while (preg_match($this->pattern, $text, $match, \PREG_OFFSET_CAPTURE, $at) === 1) {
            [[$found, $offset]] = $match;
            $parts[] = substr($text, $at, $offset - $at);
            $parts[] = $this->replacement($found, $match[2][0] ?? '', $match[3][0] ?? '');
            $at = $offset + \strlen($found);
        }

        return [...$parts, substr($text, $at)];
    }

    private function replacement(string $text, string $column, string $part): Replacement
    {
        return $column === ''
            ? new Replacement($text, (string) $this->parts[$text])
            : new Replacement($text, $part, $this->columns[$column] ?? (int) $column);
    }

    private static function quoted(int|string $text): string
    {
        return preg_quote((string) $text, '~');
    }
}

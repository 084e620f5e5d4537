<?php

declare(strict_types=1);

namespace Spindle\Bench\Support;

/** A table as aligned Markdown, and as HTML. */
final class Table
{
    /**
     * @param list<string>       $titles the first column is aligned to the left, the others to the right
     * @param list<list<string>> $rows
     */
    public static function markdown(array $titles, array $rows): string
    {
        $widths = array_map(
            static fn(int $column): int
                => max(3, ...array_map(mb_strlen(...), array_column([$titles, ...$rows], $column))),
            array_keys($titles),
        );
        $rule = array_map(
            static fn(int $column, int $width): string => str_repeat('-', $width - 1) . ($column === 0 ? '-' : ':'),
            array_keys($titles),
            $widths,
        );

        return implode("\n", array_map(
            static fn(array $cells): string
                => '| ' . implode(' | ', array_map(self::pad(...), array_keys($cells), $cells, $widths)) . ' |',
            [$titles, $rule, ...$rows],
        )) . "\n";
    }

    /**
     * @param list<string>       $titles
     * @param list<list<string>> $rows
     */
    public static function html(string $title, array $titles, array $rows): string
    {
        return '<h2>'
            . Page::text($title)
            . "</h2>\n<div class=\"wide\"><table>\n<thead>"
            . self::row('th', $titles)
            . "</thead>\n<tbody>"
            . implode('', array_map(static fn(array $row): string => self::row('td', $row), $rows))
                . "</tbody>\n</table></div>\n";
    }

    /** @param list<string> $texts */
    private static function row(string $tag, array $texts): string
    {
        return '<tr>' . implode(
            '',
            array_map(static fn(string $text): string => "<{$tag}>" . Page::text($text) . "</{$tag}>", $texts),
        ) . "</tr>\n";
    }

    private static function pad(int $column, string $text, int $width): string
    {
        $blanks = str_repeat(' ', $width - mb_strlen($text));

        return $column === 0 ? $text . $blanks : $blanks . $text;
    }
}

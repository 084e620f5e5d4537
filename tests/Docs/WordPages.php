<?php

declare(strict_types=1);

namespace Spindle\Tests\Docs;

use Spindle\Cli\Internal\Run\Words\Meaning;
use Spindle\Cli\Internal\Run\Words\Word;
use Spindle\Cli\Internal\Run\Words\WordTable;

/**
 * The pages for users of GNU parallel and xargs. They begin with text that is written by hand. The lists of options
 * after {@see MARKER} are made from the table of the options of `spindle run`.
 */
final class WordPages
{
    private const MARKER = "<!-- php tools/run-words.php writes the lists of options -->\n";
    private const NONE = '—';

    private function __construct() {}

    /** @return array<string, string> contents by path */
    public static function all(): array
    {
        $folder = \dirname(__DIR__, 2) . '/docs/reference';

        $parallel = "{$folder}/if-you-know-parallel.md";
        $xargs = "{$folder}/if-you-know-xargs.md";

        return [$parallel => self::head($parallel) . self::parallel(), $xargs => self::head($xargs) . self::xargs()];
    }

    private static function head(string $path): string
    {
        return explode(self::MARKER, (string) file_get_contents($path), 2)[0] . self::MARKER;
    }

    private static function parallel(): string
    {
        $page = '';
        foreach (WordTable::groups() as $title => $words) {
            $page .= "\n## {$title}\n\n| option | | here |\n|---|---|---|\n";
            foreach ($words as $word) {
                if ($word->meaning !== Meaning::Own) {
                    $page .= self::row($word, $word->names, $word->note);
                }
            }
        }

        return $page;
    }

    private static function xargs(): string
    {
        $page = "\n## Options\n\n| option | | here |\n|---|---|---|\n";
        foreach (WordTable::groups() as $words) {
            foreach ($words as $word) {
                if ($word->xargs !== []) {
                    $page .= self::row($word, $word->xargs, $word->xargsNote);
                }
            }
        }

        return $page;
    }

    /** @param list<string> $names */
    private static function row(Word $word, array $names, string $note): string
    {
        $value = $word->value === '' ? '' : " *{$word->value}*";
        $options = '`' . implode('`, `', array_map(Word::spelled(...), $names)) . '`';
        $text = ucfirst($word->text) . (preg_match('/[.\])]$/', $word->text) === 1 ? '' : '.');
        $meaning = $word->meaning === Meaning::Same && $note !== '' && $word->note !== $note
            ? Meaning::Other->value
            : $word->meaning->value;
        $cells = [$options . $value, $meaning, $text . ($note === '' ? '' : " {$note}.")];

        return '| ' . implode(' | ', array_map(self::cell(...), $cells)) . " |\n";
    }

    private static function cell(string $text): string
    {
        return $text === '' ? self::NONE : strtr($text, ['|' => '\\|', '<' => '&lt;']);
    }
}

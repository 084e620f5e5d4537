<?php

declare(strict_types=1);

namespace Spindle\Tests\Docs;

use Spindle\Cli\Internal\Run\KnownOptions\KnownOption;
use Spindle\Cli\Internal\Run\KnownOptions\Meaning;
use Spindle\Cli\Internal\Run\KnownOptions\OptionTable;

/**
 * The pages for users of GNU parallel and xargs. They begin with text that is written by hand. The lists of options
 * after {@see MARKER} are made from the table of the options of `spindle run`.
 */
final class OptionPages
{
    private const MARKER = "<!-- php tools/option-pages.php writes the lists of options -->\n";
    private const NONE = '—';

    /** @return array<string, string> contents by path */
    public static function all(): array
    {
        $folder = \dirname(__DIR__, 2) . '/docs/reference';

        $parallel = "{$folder}/if-you-know-parallel.md";
        $xargs = "{$folder}/if-you-know-xargs.md";

        return [$parallel => self::head($parallel) . self::parallel(), $xargs => self::head($xargs) . self::xargs()];
    }

    public static function spelled(string $name): string
    {
        return \strlen($name) === 1 ? "-{$name}" : "--{$name}";
    }

    private static function head(string $path): string
    {
        return explode(self::MARKER, (string) file_get_contents($path), 2)[0] . self::MARKER;
    }

    private static function parallel(): string
    {
        $page = '';
        foreach (OptionTable::groups() as $title => $options) {
            $page .= "\n## {$title}\n\n| option | | here |\n|---|---|---|\n";
            foreach ($options as $option) {
                if ($option->meaning !== Meaning::Own) {
                    $page .= self::row($option, $option->names, $option->note);
                }
            }
        }

        return $page;
    }

    private static function xargs(): string
    {
        $page = "\n## Options\n\n| option | | here |\n|---|---|---|\n";
        foreach (OptionTable::groups() as $options) {
            foreach ($options as $option) {
                if ($option->xargs !== []) {
                    $page .= self::row($option, $option->xargs, $option->xargsNote);
                }
            }
        }

        return $page;
    }

    /** @param list<string> $names */
    private static function row(KnownOption $option, array $names, string $note): string
    {
        $value = $option->value === '' ? '' : " *{$option->value}*";
        $options = '`' . implode('`, `', array_map(self::spelled(...), $names)) . '`';
        $text = self::sentences($option->text);
        $meaning = $option->meaning === Meaning::Same && $note !== '' && $option->note !== $note
            ? Meaning::Other->value
            : $option->meaning->value;
        $cells = [$options . $value, $meaning, $text . ($note === '' ? '' : " {$note}.")];

        return '| ' . implode(' | ', array_map(self::cell(...), $cells)) . " |\n";
    }

    /** Turns a default in brackets into a sentence. Removes the names of the option, which are in the first column. */
    private static function sentences(string $text): string
    {
        $text = (string) preg_replace(['/\. Also -\w\b/', '/[.]? \[default: (.*)\]$/'], ['', '. Default: $1'], $text);

        return ucfirst($text) . (preg_match('/[.)]$/', $text) === 1 ? '' : '.');
    }

    private static function cell(string $text): string
    {
        return $text === '' ? self::NONE : strtr($text, ['|' => '\\|', '<' => '&lt;']);
    }
}

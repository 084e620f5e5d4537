<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Words;

/**
 * All options of GNU parallel 20221122, of xargs (findutils 4.9) and of `spindle run`. The parser, the help, the pages
 * for users of these tools, and their tests are made from this table.
 */
final class WordTable
{
    /** The groups in their order in the help. */
    private const GROUPS = [
        'Jobs' => StartWords::ROWS,
        'Input' => InputWords::ROWS,
        'Command' => CommandWords::ROWS,
        'Output' => OutputWords::ROWS,
        'Failures, job log and results' => OutcomeWords::ROWS,
        'Progress' => ProgressWords::ROWS,
        'Standard input in blocks' => PipeWords::ROWS,
        'Other machines, and the rest' => OtherWords::ROWS,
    ];

    /** @var array<array-key, Word> by spelling without dashes */
    private readonly array $words;

    /** @param list<list<string|Meaning>>|null $rows those of another command; null for `spindle run` */
    public function __construct(?array $rows = null)
    {
        $words = [];
        foreach ($rows === null ? self::groups() : [array_map(Word::of(...), $rows)] as $group) {
            foreach ($group as $word) {
                $words += array_fill_keys($word->names, $word);
            }
        }
        $this->words = $words;
    }

    /** @return array<string, list<Word>> by title */
    public static function groups(): array
    {
        $groups = [];
        foreach (self::GROUPS as $title => $rows) {
            foreach ($rows as $row) {
                $groups[$title][] = Word::of($row);
            }
        }

        return $groups;
    }

    /** @return list<Word> the options that `spindle run` defines, in the order of the help */
    public static function defined(): array
    {
        return array_values(array_filter(
            array_merge(...array_values(self::groups())),
            static fn(Word $word): bool => $word->isDefined(),
        ));
    }

    /** @param string $name without dashes */
    public function find(string $name): ?Word
    {
        return $this->words[$name] ?? null;
    }

    /** @return list<string> the long names that begin with a text */
    public function completions(string $beginning): array
    {
        $names = array_map(strval(...), array_keys($this->words));

        return array_values(array_filter(
            $names,
            static fn(string $name): bool => \strlen($name) > 1 && str_starts_with($name, $beginning),
        ));
    }
}

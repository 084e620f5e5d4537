<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\KnownOptions;

/**
 * All options of GNU parallel 20221122, of xargs (findutils 4.9) and of `spindle run`. The parser, the help, the pages
 * for users of these tools, and their tests are made from this table.
 */
final class OptionTable
{
    /** The groups in their order in the help. */
    private const GROUPS = [
        'Jobs' => StartRows::ROWS,
        'Input' => InputRows::ROWS,
        'Command' => CommandRows::ROWS,
        'Output' => OutputRows::ROWS,
        'Failures, job log and results' => OutcomeRows::ROWS,
        'Progress' => ProgressRows::ROWS,
        'Standard input in blocks' => PipeRows::ROWS,
        'Other machines, and the rest' => OtherRows::ROWS,
    ];

    /** @var array<array-key, KnownOption> by spelling without dashes */
    private readonly array $options;

    /** @param list<list<string|Meaning>>|null $rows those of another command; null for `spindle run` */
    public function __construct(?array $rows = null)
    {
        $options = [];
        foreach ($rows === null ? self::groups() : [array_map(KnownOption::of(...), $rows)] as $group) {
            foreach ($group as $option) {
                $options += array_fill_keys($option->names, $option);
            }
        }
        $this->options = $options;
    }

    /** @return array<string, list<KnownOption>> by title */
    public static function groups(): array
    {
        $groups = [];
        foreach (self::GROUPS as $title => $rows) {
            foreach ($rows as $row) {
                $groups[$title][] = KnownOption::of($row);
            }
        }

        return $groups;
    }

    /** @return list<KnownOption> the options that `spindle run` defines, in the order of the help */
    public static function defined(): array
    {
        return array_values(array_filter(
            array_merge(...array_values(self::groups())),
            static fn(KnownOption $option): bool => $option->isDefined(),
        ));
    }

    /** @param string $name without dashes */
    public function find(string $name): ?KnownOption
    {
        return $this->options[$name] ?? null;
    }

    /** @return list<string> the long names that begin with a text */
    public function completions(string $beginning): array
    {
        $names = array_map(strval(...), array_keys($this->options));

        return array_values(array_filter(
            $names,
            static fn(string $name): bool => \strlen($name) > 1 && str_starts_with($name, $beginning),
        ));
    }
}

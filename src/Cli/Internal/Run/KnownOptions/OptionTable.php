<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\KnownOptions;

/**
 * Contains the options of `spindle sem`, or those of `spindle run`, GNU parallel 20221122 and xargs (findutils 4.9).
 * The parser, the help, the pages for users of these two tools, and tests are made from this table.
 */
final class OptionTable
{
    private const GROUPS = [
        'Jobs' => RunRows::JOBS,
        'Input' => InputRows::INPUT,
        'Command' => InputRows::COMMAND,
        'Output' => RunRows::OUTPUT,
        'Failures, job log and results' => RunRows::OUTCOME,
        'Progress' => RunRows::PROGRESS,
        'Standard input in blocks' => InputRows::BLOCKS,
        'Other machines, and the rest' => RunRows::OTHER,
    ];

    /** @var array<array-key, KnownOption> by spelling without dashes */
    private readonly array $bySpelling;

    /** @param list<KnownOption> $options in the order of the help */
    private function __construct(private readonly array $options)
    {
        $bySpelling = [];
        foreach ($options as $option) {
            $bySpelling += array_fill_keys($option->names, $option);
        }
        $this->bySpelling = $bySpelling;
    }

    public static function ofRun(): self
    {
        return new self(array_merge(...array_values(self::groups())));
    }

    public static function ofSem(): self
    {
        return new self(array_map(KnownOption::of(...), RunRows::SEM));
    }

    /** @return array<string, list<KnownOption>> the options of `spindle run` by title */
    public static function groups(): array
    {
        return array_map(static fn(array $rows): array => array_map(KnownOption::of(...), $rows), self::GROUPS);
    }

    /** @return list<KnownOption> the options that the command defines, in the order of the help */
    public function defined(): array
    {
        return array_values(array_filter($this->options, static fn(KnownOption $option): bool => $option->isDefined()));
    }

    /** @param string $name without dashes */
    public function find(string $name): ?KnownOption
    {
        return $this->bySpelling[$name] ?? null;
    }

    /** @return list<string> the long names that begin with a text */
    public function completions(string $beginning): array
    {
        $names = array_map(strval(...), array_keys($this->bySpelling));

        return array_values(array_filter(
            $names,
            static fn(string $name): bool => \strlen($name) > 1 && str_starts_with($name, $beginning),
        ));
    }
}

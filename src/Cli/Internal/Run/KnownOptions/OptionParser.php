<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\KnownOptions;

use Spindle\Cli\Internal\Run\Output\ProgressMode;
use Spindle\Cli\Internal\UsageException;

/**
 * Reads options as GNU parallel and xargs do, and rewrites them for Symfony's parser. Options end at the first word
 * that is not an option. A `--` is inserted before this word. Each option becomes --name or --name=value, with its
 * first name in the table, because Symfony's parser refuses -0, -P and a separate value with a dash (-j -1).
 */
final class OptionParser
{
    /** Options that GNU parallel and xargs read differently if the value is missing, and the option to use instead. */
    private const NEEDS_VALUE = ['-i' => '-I', '--replace' => '-I', '-e' => '-E', '--eof' => '-E'];

    private const NAMES_ELSEWHERE = [
        'concurrency' => '--jobs N', 'max-parallel' => '--jobs N', 'parallel' => '--jobs N', 'workers' => '--jobs N',
        'chdir' => '--work-dir DIR', 'cwd' => '--work-dir DIR', 'directory' => '--work-dir DIR',
        'file' => '--arg-file FILE', 'input' => '--arg-file FILE', 'input-file' => '--arg-file FILE',
        'fail-fast' => '--halt now,fail=1', 'log' => '--joblog FILE', 'output' => '--results DIR',
        'retry' => '--retries N',
    ];

    public function __construct(private readonly OptionTable $table) {}

    /**
     * @param list<string> $tokens the words after the command's name
     *
     * @return list<string> the rewritten options, a `--`, and the other words
     *
     * @throws UsageException when an option is refused
     */
    public function normalise(array $tokens): array
    {
        $options = [];
        while (($token = array_shift($tokens)) !== null) {
            if ($token === '--') {
                break;
            }
            if ($token === '' || $token[0] !== '-' || $token === '-') {
                array_unshift($tokens, $token);
                break;
            }
            array_push(
                $options,
                ...(str_starts_with($token, '--') ? $this->long($token, $tokens) : $this->short($token, $tokens)),
            );
        }

        return [...$options, '--', ...$tokens];
    }

    /**
     * @param list<string> $following words after the option; its value is removed from them
     *
     * @return list<string>
     */
    private function long(string $token, array &$following): array
    {
        $position = strpos($token, '=');
        $name = substr($token, 2, $position === false ? null : $position - 2);
        $value = $position === false ? null : substr($token, $position + 1);
        $option = \strlen($name) === 1 ? null : $this->table->find($name);

        return $option === null
            ? [$this->unknown($token, $name)]
            : $this->option($option, "--{$name}", $value, $following);
    }

    /** Returns an unknown option, which Symfony's parser rejects. Throws if another option is probably meant. */
    private function unknown(string $token, string $name): string
    {
        $meant = self::NAMES_ELSEWHERE[$name] ?? null;
        if ($meant !== null && $this->table->find(strtok(ltrim($meant, '-'), ' ')) !== null) {
            throw new UsageException("option --{$name} does not exist; use {$meant}");
        }
        $completions = $name === '' ? [] : array_values(array_filter(
            $this->table->completions($name),
            fn(string $full): bool => $this->table->find($full)?->meaning !== Meaning::Refused,
        ));
        $names = array_unique(array_map(fn(string $full): ?string => $this->table->find($full)?->name(), $completions));
        if (\count($names) !== 1) {
            return $token;
        }

        throw new UsageException("option --{$name}: write the whole name --{$completions[0]}");
    }

    /**
     * Splits a word such as -kj8 into its options. The last option can have the rest of the word as its value.
     *
     * @param list<string> $following
     *
     * @return list<string>
     */
    private function short(string $token, array &$following): array
    {
        if (preg_match('/^-v{3,}$/D', $token) === 1) {
            return ['-vvv'];
        }
        $options = [];
        for ($i = 1, $length = \strlen($token); $i < $length; ++$i) {
            $option = $this->table->find($token[$i]);
            if ($option === null) {
                return [$token]; // Symfony's parser reports the error.
            }
            $hasRest = $option->takesValue() && $i + 1 < $length;
            $value = $hasRest ? substr($token, $i + 1) : null;
            array_push($options, ...$this->option($option, "-{$token[$i]}", $value, $following));
            if ($hasRest) {
                break;
            }
        }

        return $options;
    }

    /**
     * @param string|null  $value     the value in the same word; null for none
     * @param list<string> $following
     *
     * @return list<string>
     */
    private function option(KnownOption $option, string $spelling, ?string $value, array &$following): array
    {
        if ($option->meaning === Meaning::Refused) {
            throw $option->refusal($spelling);
        }
        if ($option->meaning === Meaning::Ignored && $value === null) {
            return [];
        }
        if ($value !== null || !$option->takesValue()) {
            return [$value === null ? "--{$option->name()}" : "--{$option->name()}={$value}"];
        }
        $withValue = self::NEEDS_VALUE[$spelling] ?? null;
        if ($withValue !== null) {
            throw new UsageException(
                "option {$spelling}: its meaning without a value differs between GNU parallel and xargs; write"
                . " {$withValue} VALUE",
            );
        }
        return match (true) {
            $option->name() === 'progress' => ['--progress=' . self::progressMode($following)],
            $spelling === '-l' || $spelling === '--max-lines' => $this->maxLines($spelling, $following),
            default => $following === [] ? ["--{$option->name()}"] : ["--{$option->name()}=" . array_shift($following)],
        };
    }

    /**
     * Removes and returns the next word if it is a mode of --progress; otherwise returns "bar". In GNU parallel, the
     * option has no value.
     *
     * @param list<string> $following
     */
    private static function progressMode(array &$following): string
    {
        return ProgressMode::tryFrom($following[0] ?? '') === null
            ? ProgressMode::Bar->value
            : (string) array_shift($following);
    }

    /**
     * @param list<string> $following words after the option. A number as the first word is refused, because GNU
     *                                parallel reads this number as the value, and xargs reads it as the command
     *
     * @return list<string> the option with the value 1
     */
    private function maxLines(string $spelling, array $following): array
    {
        if (is_numeric($following[0] ?? '')) {
            throw new UsageException("option {$spelling}: give the number as -L {$following[0]}");
        }

        return ['--max-lines=1'];
    }
}

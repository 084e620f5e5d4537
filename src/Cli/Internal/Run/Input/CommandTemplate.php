<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

use Spindle\Cli\Internal\UsageException;
use Spindle\Command\Command;

/**
 * A command with GNU parallel's replacement strings: {} is the input, {.} the input without its extension, {/} its base
 * name, {//} its folder, and {/.} its base name without extension. {#} is the job's number, {%} its slot: the lowest
 * number that no other running job has. {1} and {-1} are the first and the last value of a job with several values.
 *
 * Several words are a program and its arguments; no shell reads them. A single word is a shell line if it contains
 * white space or a character that is special to a shell. Values are quoted when they are inserted into a shell line.
 */
final class CommandTemplate implements JobFormat
{
    /** Words, such as > and >out/{.}, that a shell would interpret instead of passing them to a program. */
    private const OPERATOR_PATTERN = '~^(?:\d?(?:>>?|<|>\||[<>]&[\d-]|>>?/dev/null)|&>>?|\|&?|\|\||&&?|;'
        . '|(?:\d?(?:>[>|]?|<)|&>>?)[\w./$-]*\{[^{}\s]*\}[^<>\s]*|\{[\d/.#%-]*\};\w*)$~D';
    private const SHELL_CHARACTER_PATTERN = "~[\\s|&;<>()$`\\\\\"'*?[\\]#\\~!]~";

    /** Text for {%} in the job log: the log must not depend on the slots of jobs. */
    private const ANY_SLOT = '{%}';

    private function __construct(private readonly TemplateBody $body, private readonly bool $usesSlot) {}

    /**
     * @param list<string> $words
     * @param bool $isQuoted         whether no shell reads the command, even if it is one word (-q)
     * @param bool $repeatsWords     whether a word with a list is repeated for each value (-X, -N, -L). A list is a
     *                               replacement string that stands for all values of a job, such as {}
     * @param bool $hasSeveralValues whether a job can have several values
     * @param bool $addsValues       whether values are added to a template without replacement strings
     *
     * @throws UsageException when a shell could run a value as code, when a replacement string of GNU parallel is not
     *                        supported, or when a word is meant for a shell and no shell reads it
     */
    public static function fromWords(
        array $words,
        ReplacementStrings $strings = new ReplacementStrings(),
        bool $isQuoted = false,
        bool $repeatsWords = false,
        bool $hasSeveralValues = false,
        bool $addsValues = true,
    ): self {
        if ($words === [] || $words[0] === '') {
            throw new UsageException('the first word of the command is empty; give a program');
        }
        self::rejectUnsupported(implode(' ', $words), $strings);
        foreach ($words as $word) {
            if (\count($words) > 1 && !$isQuoted && preg_match(self::OPERATOR_PATTERN, $word) === 1) {
                throw self::needsShell($word);
            }
        }
        $isShellLine = \count($words) === 1
            && !$isQuoted
            && preg_match(self::SHELL_CHARACTER_PATTERN, $strings->removeFrom($words[0])) === 1;
        if ($addsValues && !$strings->isIn(implode(' ', $words))) {
            self::rejectUnknownColumn(implode(' ', $words), $strings);
            if ($isShellLine) {
                $words[0] = self::withValues($words[0], $strings->forValues());
            } else {
                $words[] = $strings->forValues();
            }
        }
        $usesSlot = false;
        foreach ($strings->split(implode(' ', $words)) as $part) {
            $usesSlot = $usesSlot || ($part instanceof Replacement && $part->part === Replacement::SLOT);
        }

        return new self(
            $isShellLine
                ? new ShellTemplate($words[0], $strings, $repeatsWords, $hasSeveralValues)
                : new ProgramTemplate($words, $strings, $repeatsWords, keepsMissing: $isQuoted),
            $usesSlot,
        );
    }

    public function isShellLine(): bool
    {
        return $this->body instanceof ShellTemplate;
    }

    public function usesSlot(): bool
    {
        return $this->usesSlot;
    }

    public function skips(JobValues $values): bool
    {
        return false;
    }

    public function job(int $sequence, JobValues $values, int $slot): InputJob
    {
        try {
            $joined = $values->joined();
            $command = $joined === null
                ? $this->command($values->list(), $sequence, $slot)
                : $this->joinedCommand($joined, $sequence, $slot);
        } catch (\ValueError $error) {
            throw new BadRecordException($error->getMessage());
        }

        return new InputJob($sequence, $values, $command, $slot, template: $this);
    }

    /** @param list<string> $values {@see TemplateBody::command()} */
    public function command(array $values, int $sequence, int $slot): Command
    {
        return $this->body->command($values, $sequence, (string) $slot);
    }

    /**
     * Returns the command with all values. May be called only if {@see addsRecordsUnchanged()} returns true.
     *
     * @param string $values the values, with NUL bytes between them
     */
    public function joinedCommand(string $values, int $sequence, int $slot): Command
    {
        \assert($this->body instanceof ProgramTemplate);

        return $this->body->joinedCommand($values, $sequence, (string) $slot);
    }

    /**
     * @param list<string> $values
     * @param int|null     $slot   number that replaces {%}; null for the job log: {%} stays in the text, so that the
     *                             text does not depend on the slot
     */
    public function text(array $values, int $sequence, ?int $slot): string
    {
        return $this->body->text($values, $sequence, $slot === null ? self::ANY_SLOT : (string) $slot);
    }

    public function addsRecordsUnchanged(): bool
    {
        return $this->body instanceof ProgramTemplate && $this->body->addsRecordsUnchanged();
    }

    public function baseSize(int $sequence, int $slot): array
    {
        $words = $this->body->baseWords($sequence, (string) $slot);

        return [array_sum(array_map(\strlen(...), $words)) + \count($words), \count($words)];
    }

    public function addedSize(array $values, int $count, int $sequence, int $slot): array
    {
        return $this->body->addedSize($values, $count, $sequence, (string) $slot);
    }

    private static function rejectUnsupported(string $words, ReplacementStrings $strings): void
    {
        $replacement = $strings->unsupportedIn($words);
        if ($replacement !== null) {
            throw new UsageException(
                "the command contains {$replacement}, a replacement string of GNU parallel that spindle run does not"
                . ' support; it supports {} {.} {/} {//} {/.} {#} {%}, and {1} {1.} {-1} and the like. To change a'
                . ' value in another way, use a shell line, such as \'x={}; echo "${x%.*}"\'. To pass these characters'
                . ' literally, put them into an environment variable',
            );
        }
    }

    /** Rejects a misspelled {NAME} of a column. Otherwise, {NAME} would stay, and all values would be appended. */
    private static function rejectUnknownColumn(string $words, ReplacementStrings $strings): void
    {
        $name = $strings->unknownColumnIn($words);
        if ($name !== null) {
            throw new UsageException(
                "the command contains {$name} and no replacement string, but the header has no such column; correct the"
                . ' name, or add {} to pass these characters literally',
            );
        }
    }

    private static function withValues(string $line, string $values): string
    {
        $end = \strlen($line);
        while ($end > 0 && str_contains(" \t\n", $line[$end - 1])) {
            $isEscaped = self::isEscaped($line, $end - 1);
            if ($isEscaped && $line[$end - 1] !== "\n") {
                break;
            }
            $end -= $isEscaped ? 2 : 1; // a backslash and a line feed continue the line
        }
        $line = substr($line, 0, $end);
        if ($end > 0 && str_contains(';&|(', $line[$end - 1]) && !self::isEscaped($line, $end - 1)) {
            throw new UsageException(
                "the command ends with {$line[$end - 1]}, after which a value would be a command of its own; add {}"
                . ' where the value belongs',
            );
        }

        return "{$line} {$values}";
    }

    private static function isEscaped(string $line, int $at): bool
    {
        $backslashes = $at - \strlen(rtrim(substr($line, 0, $at), '\\'));

        return $backslashes % 2 === 1;
    }

    private static function needsShell(string $word): UsageException
    {
        return new UsageException(
            "the command contains the word {$word}, but no shell reads a command of several words; give one word, such"
            . " as 'gzip -c {} > {}.gz'. To pass {$word} to a program, quote {$word} in that one word, or use option -q"
            . ' of spindle run',
        );
    }
}

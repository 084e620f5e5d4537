<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

use Spindle\Cli\Internal\UsageException;
use Spindle\Command\Command;

/**
 * A command with GNU parallel's replacement strings: {} is the input, {.} the input without its extension, {/} its base
 * name, {//} its folder, {/.} its base name without extension, {#} the job's number, and {%} the number of its slot.
 *
 * Several words are a program and its arguments; no shell reads them. A single word with white space or a character
 * that is special to a shell is a shell line. Values in it are quoted.
 */
final class CommandTemplate
{
    private const REPLACEMENT_PATTERN = '~\{(//|/\.|/|\.|#|%|)\}~';

    /** Replacement strings of GNU parallel that are not supported, including those of its --plus: see parallel(1). */
    private const UNSUPPORTED_PATTERN = '~\{(?:-?\d+(?:/\.|//|/|\.)?|/?\.{2,3}|\+(?:/|\.{1,3})|0[#%]|\#\#|=.*?=)\}~s';

    /** Words that a shell would interpret instead of passing them to a program. */
    private const OPERATOR_PATTERN = '~^(?:\d?(?:>>?|<|>\||[<>]&[\d-]|>>?/dev/null)|&>>?|\|&?|\|\||&&?|;)$~D';
    private const SHELL_CHARACTER_PATTERN = "~[\\s|&;<>()$`\\\\\"'*?[\\]#\\~!]~";
    private const SLOT = '%';

    /** Replacement strings whose values a shell can't run as code: numbers and, in the job log, {%} itself. */
    private const NUMERIC_REPLACEMENTS = ['#', self::SLOT];

    /** Values that need no quotes, if the characters around them allow it. */
    private const PLAIN_PATTERN = '~^[\w@%+:./-]+$~D';
    private const RESERVED_WORD_PATTERN = '~^(?:if|then|else|elif|fi|do|done|case|esac|while|until|for|in'
        . '|function|select|time|coproc)$~D';
    private const BEFORE_PLAIN_PATTERN = '~[\s/.:=-]$|^$~D';
    private const AFTER_PLAIN_PATTERN = '~^[\s/.:;|)-]|^$~D';

    /** Start of a bracket expression such as [a-z]. The words [ and [[ are commands. */
    private const BRACKET_PATTERN = '~\[(?!\[?\s)~';

    /**
     * Characters in double quotes after which a plain value needs no quotes of its own. A line feed is not one of them:
     * the shell removes it after a backslash, so that the value would continue the variable name before the backslash.
     */
    private const BEFORE_IN_DOUBLE_PATTERN = '~[ \t"/.:=,-]$~D';

    /** Replaces the number of the slot in the job log. */
    private const ANY_SLOT = '{%}';

    /**
     * @param non-empty-list<list<string>> $words      each word as alternating texts and replacements; the first and
     *                                                 the last part are texts
     * @param list<OpenQuotes>|null        $openQuotes for each replacement in a shell line; null for several words
     */
    private function __construct(
        private readonly array $words,
        private readonly ?array $openQuotes,
        private readonly bool $usesSlot,
    ) {}

    /**
     * @param non-empty-list<string> $words
     *
     * @throws UsageException when a shell could run a value as code, when a replacement string of GNU parallel is not
     *                        supported, or when a word is meant for a shell and no shell reads it
     */
    public static function fromWords(array $words): self
    {
        foreach ($words as $word) {
            if (preg_match(self::UNSUPPORTED_PATTERN, $word, $match) === 1) {
                throw self::unsupported($match[0]);
            }
            if (\count($words) > 1 && preg_match(self::OPERATOR_PATTERN, $word) === 1) {
                throw self::needsShell($word);
            }
        }
        $isShellLine = \count($words) === 1
            && preg_match(
                self::SHELL_CHARACTER_PATTERN,
                (string) preg_replace(self::REPLACEMENT_PATTERN, '', $words[0]),
            ) === 1;
        if (preg_match(self::REPLACEMENT_PATTERN, implode(' ', $words)) !== 1) {
            $isShellLine ? $words[0] .= ' {}' : $words[] = '{}';
        }

        $parsed = array_map(self::parse(...), $words);

        return new self(
            $parsed,
            $isShellLine ? self::openQuotesOf($parsed[0]) : null,
            str_contains(implode(' ', $words), '{%}'),
        );
    }

    /** Returns whether a text has a replacement string, supported or not. */
    public static function hasReplacement(string $text): bool
    {
        return preg_match(self::REPLACEMENT_PATTERN, $text) === 1 || preg_match(self::UNSUPPORTED_PATTERN, $text) === 1;
    }

    public function isShellLine(): bool
    {
        return $this->openQuotes !== null;
    }

    public function usesSlot(): bool
    {
        return $this->usesSlot;
    }

    /** @throws \ValueError when the command contains a NUL byte or has no program */
    public function command(string $input, int $sequence, int $slot): Command
    {
        return $this->expand($input, $sequence, (string) $slot);
    }

    /** Returns the command for the job log, with {%} instead of the slot's number: the same text in each slot. */
    public function text(string $input, int $sequence): string
    {
        return $this->expand($input, $sequence, self::ANY_SLOT)->toString();
    }

    private function expand(string $input, int $sequence, string $slot): Command
    {
        $words = [];
        foreach ($this->words as $parts) {
            $word = $parts[0];
            for ($i = 1, $count = \count($parts); $i < $count; $i += 2) {
                $value = self::value($parts[$i], $input, $sequence, $slot);
                $openQuotes = $this->openQuotes[$i >> 1] ?? null;
                $word .= $openQuotes === null ? $value : self::quote($value, $openQuotes, $parts, $i);
                $word .= $parts[$i + 1];
            }
            $words[] = $word;
        }

        return $this->openQuotes !== null ? Command::shell($words[0]) : Command::of(...$words);
    }

    /**
     * @param list<string> $parts texts and replacements of a shell line
     *
     * @return list<OpenQuotes> for each replacement
     */
    private static function openQuotesOf(array $parts): array
    {
        $scanner = new ShellLineScanner();
        $scanner->read($parts[0]);
        $openQuotes = [];
        $refused = [];
        for ($i = 1, $count = \count($parts); $i < $count; $i += 2) {
            $openQuotes[] = $scanner->openQuotes();
            $place = $scanner->refusalReason();
            if ($place === 'directly after $' || !\in_array($parts[$i], self::NUMERIC_REPLACEMENTS, true)) {
                $refused[] = ["{{$parts[$i]}}", $place];
            }
            $scanner->valueInserted();
            $scanner->read($parts[$i + 1]);
        }
        foreach ($refused as [$replacement, $place]) {
            $place = $scanner->hasHereDocument() ? 'in a line with a here-document (<<)' : $place;
            if ($place !== null) {
                throw self::unsafe($replacement, $place);
            }
        }

        return $scanner->hasHereDocument()
            ? array_map(static fn(): OpenQuotes => OpenQuotes::Refused, $openQuotes)
            : $openQuotes;
    }

    private static function unsupported(string $replacement): UsageException
    {
        return new UsageException(
            "the command contains {$replacement}, a replacement string of GNU parallel that spindle run does not"
            . ' support; it supports {} {.} {/} {//} {/.} {#} and {%}. To pass these characters literally, put them'
            . ' into an environment variable',
        );
    }

    private static function needsShell(string $word): UsageException
    {
        return new UsageException(
            "the command contains the word {$word}, but no shell reads a command of several words; give one word, such"
            . " as 'gzip -c {} > {}.gz'. To pass {$word} to a program, quote it inside that word",
        );
    }

    private static function unsafe(string $replacement, string $place): UsageException
    {
        return new UsageException(
            "the command contains {$replacement} {$place}, where a shell could run the input as code; pass it as an"
            . " argument, as in: sh -c 'echo \"\$1\"' sh {$replacement}",
        );
    }

    /** @param list<string> $parts texts and replacements; the value replaces the one at $i */
    private static function quote(string $value, OpenQuotes $openQuotes, array $parts, int $i): string
    {
        $isPlain = preg_match(self::PLAIN_PATTERN, $value) === 1;
        $quoted = "'" . str_replace("'", "'\\''", $value) . "'";

        return match ($openQuotes) {
            OpenQuotes::None => $isPlain && self::mayStayPlain($value, $parts, $i) ? $value : $quoted,
            OpenQuotes::Single => $isPlain ? $value : "'{$quoted}'",
            OpenQuotes::Double => $isPlain && preg_match(self::BEFORE_IN_DOUBLE_PATTERN, $parts[$i - 1]) === 1
                ? $value
                : "\"{$quoted}\"",
            OpenQuotes::Refused => $value,
        };
    }

    /**
     * Returns whether a plain value needs no quotes between its neighbouring characters. Without quotes, a value could
     * become part of a variable's name, the descriptor of a redirection, or a reserved word. Bash reads a - at the end
     * of a redirection's word (>&3-) as "move the descriptor". Between brackets, a - means a range.
     *
     * @param list<string> $parts
     */
    private static function mayStayPlain(string $value, array $parts, int $i): bool
    {
        return preg_match(self::RESERVED_WORD_PATTERN, $value) !== 1
            && !str_ends_with($value, '-')
            && preg_match(self::BRACKET_PATTERN, implode('', \array_slice($parts, 0, $i))) !== 1
            && ($parts[$i - 1] !== '' || $i === 1)
            && ($parts[$i + 1] !== '' || $i + 2 === \count($parts))
            && preg_match(self::BEFORE_PLAIN_PATTERN, $parts[$i - 1]) === 1
            && preg_match(self::AFTER_PLAIN_PATTERN, $parts[$i + 1]) === 1;
    }

    private static function value(string $replacement, string $input, int $sequence, string $slot): string
    {
        return match ($replacement) {
            '' => $input,
            '.' => self::withoutExtension($input),
            '/' => self::baseName($input),
            '//' => $input === '' ? '.' : \dirname($input),
            '/.' => self::withoutExtension(self::baseName($input)),
            '#' => (string) $sequence,
            self::SLOT => $slot,
            default => throw new \LogicException("There is no replacement string {{$replacement}}"),
        };
    }

    private static function baseName(string $path): string
    {
        $slash = strrpos($path, '/');

        return $slash === false ? $path : substr($path, $slash + 1);
    }

    private static function withoutExtension(string $path): string
    {
        return (string) preg_replace('~\.[^/.]*$~D', '', $path);
    }

    /** @return list<string> texts and replacements */
    private static function parse(string $word): array
    {
        $parts = preg_split(self::REPLACEMENT_PATTERN, $word, -1, \PREG_SPLIT_DELIM_CAPTURE);

        return $parts === false ? [$word] : $parts;
    }
}

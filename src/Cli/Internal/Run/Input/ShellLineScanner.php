<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

/**
 * Scans a shell line with its quotes, comments and expansions. {@see openQuotes()} returns the quotes that are open at
 * the current position. The caller quotes a value accordingly, so that the shell reads the value as data.
 *
 * The rules are those of the Shell Command Language (POSIX.1-2017, XCU 2.2, 2.3, 2.6), as dash and bash implement them.
 * Some constructs mean different things in dash and bash, or need a complete parser. After such a construct, only
 * numbers can be inserted.
 *
 * @see https://pubs.opengroup.org/onlinepubs/9699919799/utilities/V3_chap02.html
 */
final class ShellLineScanner
{
    /** Matches a word before a command or a name: a reserved word, or a built-in that executes its arguments. */
    private const RESERVED_PATTERN = '/\G(?:if|then|elif|else|do|while|until|case|for|select|function|time|coproc|[{}!]'
        . '|exec|command|builtin|eval|source|\.)(?=[\s;&|<>()]|$)/D';

    private OpenConstructs $open;

    /** Last character read: x for an escaped one or a value; '' at the start. An escaped line feed is ignored. */
    private string $previous = '';

    private bool $atWordStart = true;

    /** A backslash or a dollar sign at the end of the scanned text, which affects the next character; else ''. */
    private string $pending = '';

    /** Describes the first position after which the scanner can't follow the line; null if there is none. */
    private ?string $unclearPlace = null;

    /** Set when the scanned code has <<, which begins a here-document, or <<<, a here-string of bash. */
    public bool $hasHereDocument = false;

    public function __construct()
    {
        $this->open = new OpenConstructs();
    }

    public function __clone()
    {
        $this->open = clone $this->open;
    }

    /** Scans the next part of the line, up to the next value or to the end. */
    public function read(string $text): void
    {
        for ($at = 0; $at < \strlen($text); $at += $this->readNext($text, $at));
    }

    /**
     * Scans the next characters that have a meaning together, such as $(, or one plain character.
     *
     * @return positive-int number of bytes that were scanned; $at plus this number may exceed the text's length
     */
    public function readNext(string $text, int $at): int
    {
        $this->pending = '';
        $step = max(1, $this->step($text, $at));
        $isEscape = $text[$at] === '\\' && $step === 2;
        if (!$isEscape || ($text[$at + 1] ?? '') !== "\n") {
            $this->previous = $isEscape ? 'x' : $text[min($at + $step, \strlen($text)) - 1];
        }

        return $step;
    }

    public function expansionDepth(): int
    {
        return $this->open->innermost->expansionDepth;
    }

    public function valueInserted(): void
    {
        $this->pending = '';
        $this->previous = 'x';
        $this->open->innermost->mayBeName = $this->open->innermost->mayBeName || $this->atWordStart;
        $this->atWordStart = false;
    }

    /** Returns the quotes around the current position; Refused if only a number can be inserted there. */
    public function openQuotes(): OpenQuotes
    {
        return match (true) {
            $this->refusalReason() !== null => OpenQuotes::Refused,
            $this->open->innermost->kind === ShellConstruct::SINGLE_QUOTES => OpenQuotes::Single,
            $this->open->innermost->kind === ShellConstruct::DOUBLE_QUOTES => OpenQuotes::Double,
            default => OpenQuotes::None,
        };
    }

    /** Returns a description of the current position if only numbers can be inserted there; else null. */
    public function refusalReason(): ?string
    {
        $isInSingleQuotes = $this->open->innermost->kind === ShellConstruct::SINGLE_QUOTES;

        return $this->unclearPlace ?? $this->open->innermost->refusalReason() ?? match (true) {
            !$isInSingleQuotes && $this->pending === '\\' => 'directly after a backslash',
            !$isInSingleQuotes && $this->pending === '$' => 'directly after $',
            default => null,
        };
    }

    /** Returns whether the position is in an assignment or after < or >. A second value would be a separate word. */
    public function allowsOnlyOneValue(): bool
    {
        return $this->open->innermost->isInSingleValue();
    }

    /** Returns whether an argument can begin here: the program of the command precedes the current position. */
    public function isAtArgument(): bool
    {
        return $this->atWordStart && $this->open->innermost->hasProgram && !$this->open->innermost->hasOneValue;
    }

    /** @return int number of bytes that were scanned */
    private function step(string $text, int $at): int
    {
        return match ($this->open->innermost->kind) {
            ShellConstruct::SINGLE_QUOTES => $this->stepTo("'", $text, $at),
            ShellConstruct::COMMENT => $this->stepTo("\n", $text, $at),
            ShellConstruct::BACKTICK => $this->stepInBackticks($text, $at),
            ShellConstruct::DOUBLE_QUOTES => $this->stepInDouble($text, $at),
            ShellConstruct::PARAMETER_EXPANSION => $this->stepInParameter($text, $at),
            ShellConstruct::ARITHMETIC, ShellConstruct::PARENTHESIS => $this->stepInArithmetic($text, $at),
            default => $this->stepInCode($text, $at),
        };
    }

    /** Scans the text before $end or before a separator of words. If one of them is next, scans only that character. */
    private function stepTo(string $end, string $text, int $at): int
    {
        $length = strcspn($text, $end . RepeatedWords::SEPARATORS, $at);
        if ($length === 0 && $text[$at] === $end) {
            $this->endConstruct();
            $this->atWordStart = $end === "\n";
        }

        return max(1, $length);
    }

    private function stepInBackticks(string $text, int $at): int
    {
        if ($text[$at] === '`') {
            $this->endConstruct();
        }

        return $text[$at] === '\\' ? $this->readEscape($text, $at) : 1;
    }

    private function stepInDouble(string $text, int $at): int
    {
        if ($text[$at] === '"') {
            $this->endConstruct();

            return 1;
        }

        return $text[$at] === '\\' ? $this->readEscape($text, $at) : $this->readExpansion($text, $at);
    }

    private function stepInParameter(string $text, int $at): int
    {
        switch ($text[$at]) {
            case '}':
                $this->endConstruct();

                return 1;
            case '\\':
                return $this->readEscape($text, $at);
            case "'":
            case '"':
                return $this->markUnclear('after quotes inside ${...}');
            case '<':
            case '>':
                return ($text[$at + 1] ?? '') === '(' ? $this->markUnclear('after <( or >( inside ${...}') : 1;
            default:
                return $this->readExpansion($text, $at);
        }
    }

    /**
     * Scans the text after $((. If a single ) ends this text instead of )), a shell reads $(( as $( and (. The scanner
     * does not support that case, so it refuses all later positions.
     */
    private function stepInArithmetic(string $text, int $at): int
    {
        switch ($text[$at]) {
            case '(':
                $this->open->begin(ShellConstruct::PARENTHESIS);

                return 1;
            case ')':
                return $this->closeArithmetic($text, $at);
            case '\\':
                return $this->readEscape($text, $at);
            case "'":
            case '"':
            case '#':
                return $this->markUnclear('after quotes or # inside $((...))');
            default:
                return $this->readExpansion($text, $at);
        }
    }

    private function closeArithmetic(string $text, int $at): int
    {
        $isParenthesis = $this->open->innermost->kind === ShellConstruct::PARENTHESIS;
        $this->endConstruct();
        if ($isParenthesis) {
            return 1;
        }

        return ($text[$at + 1] ?? '') === ')' ? 2 : $this->markUnclear('after $((...) ...)');
    }

    private function stepInCode(string $text, int $at): int
    {
        $character = $text[$at];
        $wasWordStart = $this->atWordStart;
        $isProcessSubstitution = preg_match('/\G[<>]\(/', $text, offset: $at) === 1;
        $this->atWordStart = !$isProcessSubstitution && str_contains(" \t\n;&|()<>", $character);
        if ($this->atWordStart && !$wasWordStart) {
            $this->open->innermost->endWord($character);
        }
        $this->open->innermost->readCharacter($character, $wasWordStart);
        $step = $wasWordStart ? $this->readWordStart($text, $at) : 0;
        if ($step > 0) {
            return $step;
        }

        return match ($character) {
            '\\' => $this->readEscapeInCode($text, $at, $wasWordStart),
            "'", '"' => $this->open->begin($character),
            '<', '>' => $isProcessSubstitution ? $this->beginCommandSubstitution() : $this->readRedirection($text, $at),
            '[', ']' => $this->readBracket($character),
            '(' => $this->readParenthesis($text, $at),
            ')' => $this->readClosingParenthesis(),
            '$' => ($text[$at + 1] ?? '') === "'" ? $this->markUnclear("after \$'") : $this->readExpansion($text, $at),
            default => $this->readExpansion($text, $at),
        };
    }

    /** Scans text that is special only at a word start. Returns the number of scanned bytes; 0 for other text. */
    private function readWordStart(string $text, int $at): int
    {
        $construct = $this->open->innermost;
        $isCase = preg_match('/\Gcase\b/', $text, offset: $at) === 1;
        $construct->isReserved = preg_match(self::RESERVED_PATTERN, $text, offset: $at) === 1;

        // Bash also runs code in the subscript of {x[...]}, which can precede a redirection.
        return match (true) {
            $text[$at] === '#' && $construct->isInSubscript() => $this->markUnclear('after # inside x[...]'),
            $text[$at] === '#' => $this->open->begin(ShellConstruct::COMMENT),
            $isCase && $construct->isIn(ShellConstruct::COMMAND_SUBSTITUTION)
                => $this->markUnclear('after case inside $(...)'),
            preg_match('/\G\[\[[\s;&|<>()]/', $text, offset: $at) === 1 => $this->markUnclear('after [['),
            preg_match('/\G\{?[a-z_]\w*\[/i', $text, $match, offset: $at) === 1 => $this->beginSubscript(
                \strlen($match[0]),
            ),
            default => 0,
        };
    }

    private function readRedirection(string $text, int $at): int
    {
        $this->open->innermost->hasOneValue = true;
        $operator = substr($text, $at, 2);
        $this->hasHereDocument = $this->hasHereDocument || $operator === '<<';
        // Bash begins a new word after >&-, other shells do not.
        if (preg_match('/\G[<>]&(?:[ \t]|\\\\\n)*-(?![ \t\n;&|<>()])/', $text, offset: $at) === 1) {
            return $this->markUnclear("after {$operator}- and further characters");
        }
        if ($operator === '>&') {
            $this->open->innermost->isDuplication = true;
        }

        return $operator === '>&' ? 2 : 1;
    }

    private function beginSubscript(int $length): int
    {
        $this->atWordStart = false;
        ++$this->open->innermost->openBrackets;

        return $length;
    }

    private function readBracket(string $bracket): int
    {
        if ($this->open->innermost->openBrackets > 0) {
            $this->open->innermost->openBrackets += $bracket === '[' ? 1 : -1;
        }

        return 1;
    }

    private function readParenthesis(string $text, int $at): int
    {
        return match (true) {
            ($text[$at + 1] ?? '') === '(' => $this->markUnclear('after (('),
            $this->previous === '=' => $this->markUnclear('after =('),
            preg_match('/[?*+@!]/', $this->previous) === 1 => $this->markUnclear("after {$this->previous}("),
            default => $this->open->begin(ShellConstruct::SUBSHELL),
        };
    }

    private function readClosingParenthesis(): int
    {
        if ($this->open->innermost->openBrackets > 0) {
            return $this->markUnclear('after ) inside x[...]'); // in bash, the subscript contains the )
        }
        $kind = $this->open->innermost->kind;
        if ($kind === ShellConstruct::SUBSHELL || $kind === ShellConstruct::COMMAND_SUBSTITUTION) {
            $this->endConstruct();
            $this->atWordStart = $kind === ShellConstruct::SUBSHELL;
        }

        return 1;
    }

    /** Scans a backslash. A shell removes a backslash and a line feed after it, and then splits the line into words. */
    private function readEscapeInCode(string $text, int $at, bool $wasWordStart): int
    {
        if (($text[$at + 1] ?? '') !== "\n") {
            return $this->readEscape($text, $at);
        }
        $isAfterOperator = preg_match('/[;&|]/', $this->previous) === 1
            && preg_match('/\G[;&|<>()]/', $text, offset: $at + 2) !== 1;
        if (!$isAfterOperator && $this->previous !== '' && !str_contains(" \t\n", $this->previous)) {
            return $this->markUnclear('after a word or operator that is continued on the next line', 2);
        }
        $this->atWordStart = $wasWordStart;

        return 2;
    }

    private function readEscape(string $text, int $at): int
    {
        if ($at + 1 === \strlen($text)) {
            $this->pending = '\\';
        } elseif ($text[$at + 1] === "\n" && $this->previous === '$') {
            return $this->markUnclear('after $ at the end of a line', 2);
        }

        return 2;
    }

    /** Scans the beginning of an expansion ($ or `), or one plain character. */
    private function readExpansion(string $text, int $at): int
    {
        if ($text[$at] === '`') {
            return $this->open->begin(ShellConstruct::BACKTICK);
        }
        if ($text[$at] !== '$') {
            return 1;
        }
        if (preg_match('/\G\$(?:\(\(?|\{|\[|[$?!#*@0-9-])/', $text, $match, offset: $at) !== 1) {
            $this->pending = $at + 1 === \strlen($text) ? '$' : '';

            return 1;
        }

        return match ($match[0]) {
            '$(' => $this->beginCommandSubstitution(),
            '$((' => $this->open->begin(ShellConstruct::ARITHMETIC),
            '${' => preg_match('/\G\w|\G[@*#?$!-]/', $text, offset: $at + 2) === 1
                ? $this->open->begin(ShellConstruct::PARAMETER_EXPANSION)
                : $this->markUnclear('after ${'),
            '$[' => $this->markUnclear('after $['),
            '$$' => $this->readProcessId($text, $at),
            default => 2,
        };
    }

    /** Scans $$. In double quotes, bash takes the second $ of $$(, $${ and $$[ for the beginning of an expansion. */
    private function readProcessId(string $text, int $at): int
    {
        return preg_match('/\G[({[]/', $text, offset: $at + 2) === 1
            ? $this->markUnclear('after $$ and a bracket', 2)
            : 2;
    }

    private function beginCommandSubstitution(): int
    {
        $this->atWordStart = true;

        return $this->open->begin(ShellConstruct::COMMAND_SUBSTITUTION);
    }

    private function endConstruct(): void
    {
        $this->open->end();
        $this->atWordStart = false;
    }

    /** Makes {@see openQuotes()} refuse this and all later positions. Returns $step. */
    private function markUnclear(string $place, int $step = 1): int
    {
        $this->unclearPlace ??= $place;

        return $step;
    }
}

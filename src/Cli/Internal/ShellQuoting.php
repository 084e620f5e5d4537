<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

/**
 * Follows a shell line through quotes, comments and expansions. For each place it determines how a value can be
 * inserted so that the shell reads it as data.
 *
 * The rules are those of the Shell Command Language (POSIX.1-2017, XCU 2.2, 2.3, 2.6), as dash and bash implement them.
 * Where the shells differ, or where the whole grammar would be needed, every later place is refused.
 *
 * @see https://pubs.opengroup.org/onlinepubs/9699919799/utilities/V3_chap02.html
 */
final class ShellQuoting
{
    // Beginnings of constructs that may be open at a place. PARENTHESIS stands for ( inside arithmetic.
    private const SINGLE = "'";
    private const DOUBLE = '"';
    private const COMMENT = '#';
    private const BACKTICK = '`';
    private const COMMAND = '$(';
    private const SUBSHELL = '(';
    private const PARAMETER = '${';
    private const ARITHMETIC = '$((';
    private const PARENTHESIS = '$(((';

    /** @var list<string> open constructs, the innermost last */
    private array $open = [];

    /** The last character read; '' at the start. */
    private string $previous = '';

    /** Whether a word, and so a comment, may begin here. */
    private bool $atWordStart = true;

    /** The last character, if it affects the next one (a backslash or a dollar sign); else ''. */
    private string $pending = '';
    private ?string $unclear = null;
    private bool $hasHereDocument = false;

    /** Number of constructs open around the current word after >&; null outside such a word. Bash expands it twice. */
    private ?int $duplication = null;

    /** Number of constructs open around the current subscript; null outside one. Bash may execute its value. */
    private ?int $subscript = null;

    /** Number of open brackets in the subscript. */
    private int $brackets = 0;

    public function read(string $text): void
    {
        for ($at = 0, $length = \strlen($text); $at < $length; $at += $step) {
            $this->pending = '';
            $step = max(1, $this->step($text, $at));
            $this->previous = $text[min($at + $step, $length) - 1];
        }
    }

    /** Records that a value was inserted here. */
    public function skipValue(): void
    {
        $this->pending = '';
        $this->previous = 'x';
        $this->atWordStart = false;
    }

    public function quoting(): Quoting
    {
        return match (true) {
            $this->obstacle() !== null => Quoting::Refused,
            end($this->open) === self::SINGLE => Quoting::Single,
            end($this->open) === self::DOUBLE => Quoting::Double,
            default => Quoting::None,
        };
    }

    /** Returns the reason why no value can be inserted here, as a description of the place; null when one can. */
    public function obstacle(): ?string
    {
        $innermost = end($this->open);

        return match (true) {
            $this->unclear !== null => $this->unclear,
            $this->isIn(self::BACKTICK) => 'inside `...`',
            $this->isIn(self::ARITHMETIC) => 'inside $((...))',
            $this->isIn(self::PARAMETER) => 'inside ${...}',
            $innermost === self::COMMENT => 'in a comment',
            $this->duplication !== null => 'in the word after >&',
            $this->subscript !== null => 'inside x[...]',
            $this->isCommandInQuotes() => 'inside $(...) in double quotes',
            $innermost !== self::SINGLE && $this->pending === '\\' => 'directly after a backslash',
            $innermost !== self::SINGLE && $this->pending === '$' => 'directly after $',
            default => null,
        };
    }

    /** Returns whether the part that was read has a here-document. */
    public function hasHereDocument(): bool
    {
        return $this->hasHereDocument;
    }

    /** @return int number of bytes that were read */
    private function step(string $text, int $at): int
    {
        return match (end($this->open)) {
            self::SINGLE => $this->stepTo("'", $text, $at),
            self::COMMENT => $this->stepTo("\n", $text, $at),
            self::BACKTICK => $this->stepInBackticks($text, $at),
            self::DOUBLE => $this->stepInDouble($text, $at),
            self::PARAMETER => $this->stepInParameter($text, $at),
            self::ARITHMETIC, self::PARENTHESIS => $this->stepInArithmetic($text, $at),
            default => $this->stepInCode($text, $at),
        };
    }

    private function stepTo(string $end, string $text, int $at): int
    {
        $found = strpos($text, $end, $at);
        if ($found === false) {
            return \strlen($text) - $at;
        }
        array_pop($this->open);
        $this->atWordStart = $end === "\n";

        return $found + 1 - $at;
    }

    private function stepInBackticks(string $text, int $at): int
    {
        if ($text[$at] === '`') {
            $this->close();
        }

        return $text[$at] === '\\' ? $this->escape($text, $at) : 1;
    }

    private function stepInDouble(string $text, int $at): int
    {
        switch ($text[$at]) {
            case '"':
                $this->close();

                return 1;
            case '\\':
                return $this->escape($text, $at);
            default:
                return $this->expansion($text, $at);
        }
    }

    private function stepInParameter(string $text, int $at): int
    {
        switch ($text[$at]) {
            case '}':
                $this->close();

                return 1;
            case '\\':
                return $this->escape($text, $at);
            case "'":
            case '"':
                return $this->markUnclear('after quotes inside ${...}');
            default:
                return $this->expansion($text, $at);
        }
    }

    /** Reads arithmetic. $(( begins arithmetic if )) ends it; otherwise it may be a subshell in $(...). */
    private function stepInArithmetic(string $text, int $at): int
    {
        switch ($text[$at]) {
            case '(':
                $this->open[] = self::PARENTHESIS;

                return 1;
            case ')':
                return $this->closeArithmetic($text, $at);
            case '\\':
                return $this->escape($text, $at);
            case "'":
            case '"':
            case '#':
                return $this->markUnclear('after quotes or # inside $((...))');
            default:
                return $this->expansion($text, $at);
        }
    }

    private function closeArithmetic(string $text, int $at): int
    {
        if (end($this->open) === self::PARENTHESIS) {
            array_pop($this->open);

            return 1;
        }
        $this->close();

        return ($text[$at + 1] ?? '') === ')' ? 2 : $this->markUnclear('after $((...) ...)');
    }

    private function stepInCode(string $text, int $at): int
    {
        $character = $text[$at];
        $wasWordStart = $this->atWordStart;
        $this->atWordStart = str_contains(" \t\n;&|()<>", $character);
        if ($this->atWordStart && !$wasWordStart && $this->duplication === \count($this->open)) {
            $this->duplication = null;
        }
        if ($wasWordStart && $this->isIn(self::COMMAND) && preg_match('/\Gcase\b/', $text, offset: $at) === 1) {
            return $this->markUnclear('after case inside $(...)');
        }
        if ($wasWordStart && preg_match('/\G\[\[\s/', $text, offset: $at) === 1) {
            return $this->markUnclear('after [[');
        }
        if ($wasWordStart && preg_match('/\G[a-z_]\w*\[/i', $text, $match, offset: $at) === 1) {
            return $this->beginSubscript(\strlen($match[0]));
        }

        return match ($character) {
            '\\' => $this->escapeInCode($text, $at, $wasWordStart),
            "'", '"' => $this->begin($character),
            '#' => $wasWordStart ? $this->begin(self::COMMENT) : 1,
            '<', '>' => $this->redirection($text, $at),
            '[', ']' => $this->bracket($character),
            '(' => $this->parenthesis($text, $at),
            ')' => $this->closeSubshell(),
            '$' => ($text[$at + 1] ?? '') === "'" ? $this->markUnclear("after \$'") : $this->expansion($text, $at),
            default => $this->expansion($text, $at),
        };
    }

    private function redirection(string $text, int $at): int
    {
        $operator = substr($text, $at, 2);
        $this->hasHereDocument = $this->hasHereDocument || $operator === '<<';
        if ($operator === '>&') {
            $this->duplication ??= \count($this->open);
        }

        return $operator === '>&' ? 2 : 1;
    }

    private function beginSubscript(int $length): int
    {
        $this->atWordStart = false;
        if ($this->subscript === null) {
            $this->subscript = \count($this->open);
            $this->brackets = 0;
        }
        ++$this->brackets;

        return $length;
    }

    private function bracket(string $bracket): int
    {
        if ($this->subscript === \count($this->open)) {
            $this->brackets += $bracket === '[' ? 1 : -1;
            $this->subscript = $this->brackets > 0 ? $this->subscript : null;
        }

        return 1;
    }

    private function parenthesis(string $text, int $at): int
    {
        return match (true) {
            ($text[$at + 1] ?? '') === '(' => $this->markUnclear('after (('),
            $this->previous === '=' => $this->markUnclear('after =('),
            default => $this->begin(self::SUBSHELL),
        };
    }

    private function closeSubshell(): int
    {
        if (\in_array(end($this->open), [self::SUBSHELL, self::COMMAND], true)) {
            $this->atWordStart = array_pop($this->open) === self::SUBSHELL;
        }

        return 1;
    }

    /** Reads a backslash. The shell joins a line that ends with one to the next line before it splits words. */
    private function escapeInCode(string $text, int $at, bool $wasWordStart): int
    {
        if (($text[$at + 1] ?? '') !== "\n") {
            return $this->escape($text, $at);
        }
        if ($this->previous !== '' && !str_contains(" \t\n", $this->previous)) {
            return $this->markUnclear('after a word that is continued on the next line', 2);
        }
        $this->atWordStart = $wasWordStart;

        return 2;
    }

    private function escape(string $text, int $at): int
    {
        if ($at + 1 === \strlen($text)) {
            $this->pending = '\\';
        } elseif ($text[$at + 1] === "\n" && $this->previous === '$') {
            return $this->markUnclear('after $ at the end of a line', 2);
        }

        return 2;
    }

    /** Reads an expansion that begins with $ or `, or one plain character. */
    private function expansion(string $text, int $at): int
    {
        if ($text[$at] === '`') {
            return $this->begin(self::BACKTICK);
        }
        if ($text[$at] !== '$') {
            return 1;
        }
        if (preg_match('/\G\$(?:\(\(?|\{|\[|[$?!#*@0-9-])/', $text, $match, offset: $at) !== 1) {
            $this->pending = $at + 1 === \strlen($text) ? '$' : '';

            return 1;
        }

        return match ($match[0]) {
            '$(' => $this->beginCommand(),
            '$((' => $this->begin(self::ARITHMETIC),
            '${' => preg_match('/\G\w|\G[@*#?$!-]/', $text, offset: $at + 2) === 1
                ? $this->begin(self::PARAMETER)
                : $this->markUnclear('after ${'),
            '$[' => $this->markUnclear('after $['),
            default => 2,
        };
    }

    private function beginCommand(): int
    {
        $this->atWordStart = true;

        return $this->begin(self::COMMAND);
    }

    /** @return int number of bytes that were read */
    private function begin(string $what): int
    {
        $this->open[] = $what;

        return \strlen($what);
    }

    private function close(): void
    {
        array_pop($this->open);
        $this->atWordStart = false;
    }

    private function markUnclear(string $place, int $step = 1): int
    {
        $this->unclear ??= $place;

        return $step;
    }

    private function isIn(string $what): bool
    {
        return \in_array($what, $this->open, true);
    }

    private function isCommandInQuotes(): bool
    {
        $quotes = array_search(self::DOUBLE, $this->open, true);

        return $quotes !== false && \in_array(self::COMMAND, \array_slice($this->open, $quotes), true);
    }
}

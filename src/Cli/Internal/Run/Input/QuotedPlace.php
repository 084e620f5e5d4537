<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

/** The place of a replacement string in a shell line, with the quotes that values need there. */
final class QuotedPlace
{
    private const RESERVED_WORD = '(?:if|then|else|elif|fi|do|done|case|esac|while|until|for|in|function|select|time'
        . '|coproc)';
    private const RESERVED_WORD_PATTERN = '~^' . self::RESERVED_WORD . '$~D';
    private const BEFORE_PLAIN_PATTERN = '~[\s/.:=-]$|^$~D';
    private const AFTER_PLAIN_PATTERN = '~^[\s/.:;|)-]|^$~D';

    private const PLAIN_CHARACTER = '[\w./:=,+%@-]';

    /**
     * Patterns for the text before and after a place in an argument of a program, where a shell reads no reserved
     * words. The patterns allow only plain characters and blanks between the program and the place.
     */
    private const IN_ARGUMENT_PATTERN = '~(?:^|(?<![<>\\\\])[;|&(]|(?<!\\\\)\n)[ \t]*'
        . '(?!' . self::RESERVED_WORD . '[ \t])[\w./+-]+[ \t]'
        . '(?:(?:' . self::PLAIN_CHARACTER . '|[ \t])*[ \t])?' . self::PLAIN_CHARACTER . '*$~D';
    private const REST_OF_ARGUMENT_PATTERN = '~^' . self::PLAIN_CHARACTER . '*(?:[\s;|)]|$)~D';

    /**
     * Matches the text before a place where a plain value could become part of an expansion: a bracket expression such
     * as [a-z], a user's name after a tilde, or {1..9} in bash. Does not match the commands [ and [[.
     */
    private const EXPANSION_PATTERN = '#\[(?!\[?\s)|\~[^\s/]*$|\{[^\s}]*$#D';

    private const NAME_PATTERN = '~\b(?:for|select|function|coproc)(?:[ \t]|\\\\\n)+$~D';

    /**
     * Matches text in double quotes after which a plain value needs no further quotes. The character class must not
     * contain the line feed. After $name, a shell removes a backslash and the line feed that follows the backslash.
     * Then a value after the line feed would become part of the variable's name.
     */
    private const BEFORE_IN_DOUBLE_PATTERN = '~[ \t"/.:=,-]\w*$~D';

    /** Whether the line keeps its meaning without a value: the place is an argument of its own, between blanks. */
    private readonly bool $isWholeArgument;

    /** Whether a plain value ({@see ShellQuotes::PLAIN_PATTERN}) can be inserted here without further quotes. */
    private readonly bool $allowsPlain;

    /**
     * Checks whether plain values need quotes here. Without quotes, a value could become part of a variable's name
     * or of a redirection's descriptor, or become a reserved word. Bash reads a - at the end of a redirection (>&3-) as
     * "move the descriptor". Between brackets, a - means a range. Only the text around the place is checked: if several
     * values are inserted, blanks separate them, and a plain value needs no quotes next to a blank.
     *
     * @param bool $isAtArgument see {@see ShellLineScanner::isAtArgument()}
     * @param list<string|Replacement> $parts the parts of the shell line; $parts[$i] is $replacement
     */
    public function __construct(
        public readonly Replacement $replacement,
        public readonly OpenQuotes $quotes,
        bool $isAtArgument,
        array $parts,
        int $i,
    ) {
        $before = $parts[$i - 1];
        $after = $parts[$i + 1];
        \assert(\is_string($before) && \is_string($after));
        // $earlier and $later leave out the other replacement strings, because these may be replaced with nothing.
        $earlier = implode('', array_filter(\array_slice($parts, 0, $i), \is_string(...)));
        $later = implode('', array_filter(\array_slice($parts, $i + 1), \is_string(...)));
        $touchesAnother = $before === '' && $i > 1 || $after === '' && $i + 2 < \count($parts);
        $isDelimited = !$touchesAnother
            && preg_match(self::BEFORE_PLAIN_PATTERN, $before) === 1
            && preg_match(self::AFTER_PLAIN_PATTERN, $after) === 1;
        $this->isWholeArgument = $isAtArgument && !$touchesAnother && preg_match('~^[\s;&|)]|^$~D', $after) === 1;
        $isInArgument = preg_match(self::IN_ARGUMENT_PATTERN, $earlier) === 1
            && preg_match(self::REST_OF_ARGUMENT_PATTERN, $later) === 1;
        $this->allowsPlain = match ($quotes) {
            OpenQuotes::None => preg_match(self::EXPANSION_PATTERN, $earlier) !== 1
                && preg_match(self::NAME_PATTERN, $earlier) !== 1
                && preg_match('~^(?:\s|\\\\\n)*\(~', $later) !== 1
                && ($isDelimited || $isInArgument),
            OpenQuotes::Single => true,
            OpenQuotes::Double => preg_match(self::BEFORE_IN_DOUBLE_PATTERN, $earlier) === 1,
            OpenQuotes::Refused => false,
        };
    }

    public function quote(string $value): string
    {
        $isPlain = $this->allowsPlain && preg_match(ShellQuotes::PLAIN_PATTERN, $value) === 1;
        $quoted = ShellQuotes::around($value);

        return match ($this->quotes) {
            OpenQuotes::None => $isPlain && !self::isSpecial($value) ? $value : $quoted,
            OpenQuotes::Single => $isPlain ? $value : "'{$quoted}'",
            OpenQuotes::Double => $isPlain ? $value : "\"{$quoted}\"",
            OpenQuotes::Refused => $value,
        };
    }

    /** Returns the text for a missing value: empty quotes if the line needs a word there, or else nothing. */
    public function textWithoutValue(): string
    {
        return $this->quotes !== OpenQuotes::None || $this->isWholeArgument || $this->replacement->isList() ? '' : "''";
    }

    private static function isSpecial(string $value): bool
    {
        return str_ends_with($value, '-') || preg_match(self::RESERVED_WORD_PATTERN, $value) === 1;
    }
}

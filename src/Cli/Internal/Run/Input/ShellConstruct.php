<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

/** A construct of a shell line, such as quotes or $(...), and the state of the current word in it. */
final class ShellConstruct
{
    // Kinds. Each value is the text that begins the construct. Only PARENTHESIS, a ( inside $((...)), has another
    // value, because '(' is the value of SUBSHELL.
    public const LINE = '';
    public const SINGLE_QUOTES = "'";
    public const DOUBLE_QUOTES = '"';
    public const COMMENT = '#';
    public const BACKTICK = '`';
    public const COMMAND_SUBSTITUTION = '$('; // or a process substitution of bash: <(...) or >(...)
    public const SUBSHELL = '(';
    public const PARAMETER_EXPANSION = '${';
    public const ARITHMETIC = '$((';
    public const PARENTHESIS = '$(((';

    /** Kinds of constructs that are parts of the word around them. */
    public const EXPANSIONS = [
        self::BACKTICK,
        self::COMMAND_SUBSTITUTION,
        self::PARAMETER_EXPANSION,
        self::ARITHMETIC,
        self::PARENTHESIS,
    ];

    /** Whether the current word begins with -, so that = in it assigns nothing. */
    public bool $isOption = false;

    /** Whether the current word follows < or >, or is an assignment. Such a word can have only one value. */
    public bool $hasOneValue = false;

    /** Whether the current word follows >&. Bash expands this word twice. */
    public bool $isDuplication = false;

    /** Number of [ without their ] in a subscript x[...], which bash may execute. */
    public int $openBrackets = 0;

    public function __construct(public readonly string $kind) {}

    public function endWord(): void
    {
        $this->hasOneValue = false;
        $this->isDuplication = false;
    }
}

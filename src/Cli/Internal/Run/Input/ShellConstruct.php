<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

/**
 * A construct of a shell line, such as quotes or $(...). Its properties describe the command and the word that are
 * being read inside of the construct. They change only while no construct inside of this one is open.
 */
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
    private const EXPANSIONS = [
        self::BACKTICK,
        self::COMMAND_SUBSTITUTION,
        self::PARAMETER_EXPANSION,
        self::ARITHMETIC,
        self::PARENTHESIS,
    ];

    /** Whether the program of the current command precedes the current word. */
    public bool $hasProgram = false;

    /** Whether the current word is one such as "if" or "exec". At the start of a command, it is not the program. */
    public bool $isReserved = false;

    /** Whether the text of the current word before the current position can be the name of a variable. */
    public bool $mayBeName = false;

    /** Whether the current word follows < or >, or is an assignment. It can contain only one inserted value. */
    public bool $hasOneValue = false;

    /** Whether the current word follows >&. Bash expands this word twice. */
    public bool $isDuplication = false;

    /** Number of [ whose ] has not been read, in a subscript x[...]. Bash may run code in a subscript. */
    public int $openBrackets = 0;

    /** Number of expansions, such as $(...), around the current position. */
    public readonly int $expansionDepth;

    /** @var array<string, true> kinds of this construct and of those around it */
    private readonly array $kinds;

    private readonly bool $isInSubstitutionInQuotes;
    private readonly bool $isInSingleValue;
    private readonly bool $isInDuplication;
    private readonly bool $isInSubscript;

    public function __construct(public readonly string $kind, ?self $outer = null)
    {
        $this->kinds = [$kind => true] + ($outer->kinds ?? []);
        $this->expansionDepth = ($outer->expansionDepth ?? 0) + (int) \in_array($kind, self::EXPANSIONS, true);
        $this->isInSubstitutionInQuotes = $outer?->isInSubstitutionInQuotes === true
            || $kind === self::COMMAND_SUBSTITUTION && $outer?->isIn(self::DOUBLE_QUOTES) === true;
        $this->isInSingleValue = $outer?->isInSingleValue() === true;
        $this->isInDuplication = $outer !== null && ($outer->isInDuplication || $outer->isDuplication);
        $this->isInSubscript = $outer?->isInSubscript() === true;
    }

    /** Returns whether this construct, or one around it, has the kind. */
    public function isIn(string $kind): bool
    {
        return isset($this->kinds[$kind]);
    }

    /** Returns a description of the position if only numbers can be inserted in this construct; else null. */
    public function refusalReason(): ?string
    {
        return match (true) {
            $this->isIn(self::BACKTICK) => 'inside `...`',
            $this->isIn(self::ARITHMETIC) => 'inside $((...))',
            $this->isIn(self::PARAMETER_EXPANSION) => 'inside ${...}',
            $this->kind === self::COMMENT => 'in a comment',
            $this->isInDuplication || $this->isDuplication => 'in the word after >&',
            $this->isInSubscript() => 'inside x[...]',
            $this->isInSubstitutionInQuotes => 'inside $(...) in double quotes',
            default => null,
        };
    }

    public function isInSingleValue(): bool
    {
        return $this->isInSingleValue || $this->hasOneValue;
    }

    public function isInSubscript(): bool
    {
        return $this->isInSubscript || $this->openBrackets > 0;
    }

    /** @param string $next the character after the word */
    public function endWord(string $next): void
    {
        // A number before < or > is no program. Other words directly before < or > are treated in the same way.
        $isProgram = !$this->isReserved && !$this->hasOneValue && $next !== '<' && $next !== '>';
        $this->hasProgram = $this->hasProgram || $isProgram;
        $this->isReserved = $this->hasOneValue = $this->isDuplication = false;
    }

    /** @param string $character a character of code, not in quotes */
    public function readCharacter(string $character, bool $isFirstOfWord): void
    {
        if ($isFirstOfWord) {
            $this->mayBeName = preg_match('/[\w"\'$`\\\\]/', $character) === 1;
        } elseif ($character === '=') {
            $this->hasOneValue = $this->hasOneValue || $this->mayBeName;
        } elseif ($this->openBrackets === 0) {
            $this->mayBeName = $this->mayBeName && preg_match('/[\w"\'$`\\\\+[\]]/', $character) === 1;
        }
        $this->hasProgram = $this->hasProgram && !str_contains(";&|()\n", $character);
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

/** The tokens of a source file without spaces and comments, and the pairs of its brackets. */
final class SourceTokens
{
    public const NAMES = [\T_STRING, \T_NAME_QUALIFIED, \T_NAME_FULLY_QUALIFIED];
    public const CLOSING_BRACKETS = [')' => 1, ']' => 1, '}' => 1];

    private const OPENING_BRACKETS = ['(' => 1, '[' => 1, '{' => 1];

    /** @var list<\PhpToken> */
    public readonly array $tokens;

    /** @var array<int, int> index of the matching bracket, by the index of each bracket */
    private array $partners = [];

    /** @throws \ParseError */
    public function __construct(string $code)
    {
        $this->tokens = array_values(array_filter(
            \PhpToken::tokenize($code, \TOKEN_PARSE),
            static fn(\PhpToken $token): bool => !$token->isIgnorable() || $token->is(\T_CLOSE_TAG),
        ));
        $open = [];
        foreach ($this->tokens as $at => $token) {
            $isLong = $token->is([\T_CURLY_OPEN, \T_DOLLAR_OPEN_CURLY_BRACES, \T_ATTRIBUTE]);
            if ($isLong || isset(self::OPENING_BRACKETS[$this->singleCharacter($at)])) {
                $open[] = $at;
            } elseif (isset(self::CLOSING_BRACKETS[$this->singleCharacter($at)])) {
                $partner = (int) array_pop($open);
                $this->partners[$at] = $partner;
                $this->partners[$partner] = $at;
            }
        }
    }

    public function singleCharacter(int $at): string
    {
        $token = $this->tokens[$at] ?? null;

        return $token !== null && $token->id < 256 ? $token->text : '';
    }

    public function partner(int $bracket): int
    {
        return $this->partners[$bracket];
    }

    /** Returns the index of the closing bracket if an opening one is at this index; otherwise the index itself. */
    public function skipBrackets(int $at): int
    {
        return max($at, $this->partners[$at] ?? 0);
    }

    /** Returns the first index of a character or token id, from `$at` on and outside of brackets; or the last index. */
    public function indexOf(int $at, string|int $what): int
    {
        for (; isset($this->tokens[$at]); ++$at) {
            if (\is_int($what) ? $this->tokens[$at]->id === $what : $this->singleCharacter($at) === $what) {
                return $at;
            }
            $at = $this->skipBrackets($at);
        }

        return \count($this->tokens) - 1;
    }

    public function isClass(int $at): bool
    {
        return $this->tokens[$at]->is([\T_CLASS, \T_INTERFACE, \T_TRAIT, \T_ENUM])
            && !($at > 0 && $this->tokens[$at - 1]->is(\T_DOUBLE_COLON));
    }

    /** Returns the index of the closing brace of the class, method or `function` that begins at this index. */
    public function bodyEnd(int $at): int
    {
        return $this->partners[$this->indexOf($at, '{')];
    }
}

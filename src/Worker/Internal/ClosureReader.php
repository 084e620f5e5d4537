<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

/** Reads the source of each closure in a file, with the namespace and imports that the closure needs. */
final class ClosureReader
{
    /** Statements that run other code with the variables of a closure, including its $this. */
    private const SHARING_TOKENS = [\T_INCLUDE, \T_INCLUDE_ONCE, \T_REQUIRE, \T_REQUIRE_ONCE, \T_EVAL];

    private const CLASS_MODIFIERS = [\T_ABSTRACT, \T_FINAL, \T_READONLY];

    /** @var array<int, array{int, int, int}> see addClass(); by the index of the class's first token */
    private array $classes = [];

    /** @var list<\PhpToken> tokens of the source */
    private readonly array $tokens;

    public function __construct(
        private readonly string $file,
        private readonly string $text,
        private readonly SourceTokens $source,
        private readonly TopLevelStatements $topLevel,
    ) {
        $this->tokens = $source->tokens;
    }

    /** @return array<int, list<ClosureSource>> closures by the line of their `fn` or `function` */
    public function closures(): array
    {
        $functions = $closures = [];
        foreach ($this->tokens as $at => $token) {
            if ($token->is([\T_FN, \T_FUNCTION])) {
                $functions[] = $at;
            } elseif ($this->source->isClass($at)) {
                $this->addClass($at);
            }
        }
        ksort($this->classes);
        foreach ($functions as $at) {
            $closure = $this->closure($at);
            if ($closure !== null) {
                // In arguments, PHP reports the next token's line, because `function:` would begin a named argument.
                foreach (array_unique([$this->tokens[$at]->line, $this->tokens[$at + 1]->line]) as $line) {
                    $closures[$line][] = $closure;
                }
            }
        }

        return $closures;
    }

    /** Adds the indices of a class's keyword (`class`, `trait`, …), opening brace and last token to `$classes`. */
    private function addClass(int $at): void
    {
        $begin = $at;
        while ($begin > 0 && $this->tokens[$begin - 1]->is(self::CLASS_MODIFIERS)) {
            --$begin;
        }
        $this->classes[$this->attributesBegin($begin)] = [
            $at,
            $this->source->indexOf($at, '{'),
            $this->source->bodyEnd($at),
        ];
    }

    /** Returns the closure whose `fn` or `function` has this index; null for a named function or `use function`. */
    private function closure(int $at): ?ClosureSource
    {
        $isArrow = $this->tokens[$at]->is(\T_FN);
        $open = $at + ($this->tokens[$at + 1]->text === '&' ? 2 : 1);
        if ($this->source->singleCharacter($open) !== '(') {
            return null;
        }
        $end = $this->source->partner($open);
        $parameters = $this->variables($open);
        $uses = [];
        if ($this->tokens[$end + 1]->is(\T_USE)) {
            $uses = $this->variables($end + 2);
            $end = $this->source->partner($end + 2);
        }
        $end = $isArrow
            ? $this->arrowEnd($this->source->indexOf($end + 1, \T_DOUBLE_ARROW) + 1)
            : $this->source->bodyEnd($end + 1);
        $isStatic = $at > 0 && $this->tokens[$at - 1]->is(\T_STATIC);
        $begin = $this->attributesBegin($isStatic ? $at - 1 : $at);

        return $this->extract($begin, $end, $isStatic, $parameters, $isArrow ? null : $uses);
    }

    /** @return list<string> names of the parameters or captured variables in the brackets that begin at $open */
    private function variables(int $open): array
    {
        $names = [];
        $end = $this->source->partner($open);
        for ($at = $open + 1; $at < $end; ++$at) {
            if ($this->tokens[$at]->is(\T_VARIABLE)) {
                $names[] = substr($this->tokens[$at]->text, 1);
            }
            $at = $this->source->skipBrackets($at);
        }

        return $names;
    }

    /** Returns the index of the last token of the arrow function whose expression begins at $at. */
    private function arrowEnd(int $at): int
    {
        $ternaries = $yields = 0;
        for (; isset($this->tokens[$at]); ++$at) {
            $token = $this->tokens[$at];
            $character = $this->source->singleCharacter($at);
            $isOver = match (true) {
                isset(SourceTokens::CLOSING_BRACKETS[$character]), $character === ',', $character === ';' => true,
                $token->is([\T_CLOSE_TAG, \T_AS]) => true,
                $character === ':' => --$ternaries < 0,
                $token->is(\T_DOUBLE_ARROW) => --$yields < 0,
                default => false,
            };
            if ($isOver) {
                return $at - 1;
            }
            $ternaries += $character === '?' ? 1 : 0;
            $yields += $token->is(\T_YIELD) ? 1 : 0;
            $at = match (true) {
                $token->is(\T_FN) => $this->arrowEnd($this->source->indexOf($at, \T_DOUBLE_ARROW) + 1),
                $token->is(\T_FUNCTION), $this->source->isClass($at) => $this->source->bodyEnd($at),
                default => $this->source->skipBrackets($at),
            };
        }

        return $at - 1;
    }

    /** Returns the index of the first attribute of the closure or class at $begin; $begin if it has no attribute. */
    private function attributesBegin(int $begin): int
    {
        while ($begin > 0 && $this->source->singleCharacter($begin - 1) === ']') {
            $open = $this->source->partner($begin - 1);
            if (!$this->tokens[$open]->is(\T_ATTRIBUTE)) {
                break;
            }
            $begin = $open;
        }

        return $begin;
    }

    /**
     * @param list<string>      $parameters
     * @param list<string>|null $uses       null for an arrow function
     */
    private function extract(int $begin, int $end, bool $isStatic, array $parameters, ?array $uses): ClosureSource
    {
        $tokens = \array_slice($this->tokens, $begin, $end - $begin + 1, true);
        $own = $this->ownTokens($begin, $end);
        $words = self::words($tokens);
        $isLate = $this->isLate($tokens);
        $preamble = $this->topLevel->preamble($begin, $words);

        return new ClosureSource(
            $this->tokens[$begin]->line,
            $this->tokens[$end]->line,
            "{$preamble}return {$this->code($begin, $end, $own)};",
            \strlen($preamble),
            $isStatic,
            $parameters,
            $uses,
            self::usesThis($own),
            StaticCalls::of($this->source, $own),
            $isLate,
            $isLate || isset($words['self']) || isset($words['parent']) || isset($words['__class__']),
            self::declaresStatic($own),
        );
    }

    /** @return array<int, \PhpToken> tokens of a closure by index, without the bodies of classes in the closure */
    private function ownTokens(int $begin, int $end): array
    {
        $own = [];
        $bodyEnds = array_column($this->classes, 2, 1);
        for ($at = $begin; $at <= $end; ++$at) {
            $own[$at] = $this->tokens[$at];
            $at = ($bodyEnds[$at] ?? $at + 1) - 1;
        }

        return $own;
    }

    /**
     * @param array<int, \PhpToken> $tokens
     *
     * @return array<string, string> names, or first parts of qualified names, by the lower-case name
     */
    private static function words(array $tokens): array
    {
        $words = [];
        foreach ($tokens as $token) {
            if ($token->is([\T_STRING, \T_NAME_QUALIFIED, \T_CLASS_C])) {
                $word = explode('\\', $token->text)[0];
                $words[strtolower($word)] = $word;
            }
        }

        return $words;
    }

    /** @param array<int, \PhpToken> $tokens */
    private function isLate(array $tokens): bool
    {
        foreach ($tokens as $at => $token) {
            if (LateBinding::isLate($token, $this->tokens[$at + 1] ?? $token)) {
                return true;
            }
        }

        return false;
    }

    /** @param array<int, \PhpToken> $own */
    private static function usesThis(array $own): bool
    {
        foreach ($own as $token) {
            $isNamed = match ($token->id) {
                \T_VARIABLE => $token->text === '$this',
                \T_STRING_VARNAME => $token->text === 'this', // "${this}"
                \T_CONSTANT_ENCAPSED_STRING => trim($token->text, '\'"') === 'this', // compact('this'), ${'this'}
                default => false,
            };
            if ($isNamed || $token->is(self::SHARING_TOKENS)) {
                return true;
            }
        }

        return false;
    }

    /** @param array<int, \PhpToken> $own */
    private static function declaresStatic(array $own): bool
    {
        foreach ($own as $at => $token) {
            if ($token->is(\T_STATIC) && ($own[$at + 1] ?? $token)->is(\T_VARIABLE)) {
                return true;
            }
        }

        return false;
    }

    /**
     * Returns the code of a closure. Literals replace magic constants that depend on the position, such as __LINE__.
     *
     * @param array<int, \PhpToken> $own
     */
    private function code(int $begin, int $end, array $own): string
    {
        $code = '';
        $from = $this->tokens[$begin]->pos;
        for ($at = $begin; $at <= $end; ++$at) {
            $token = $this->tokens[$at];
            $literal = $this->literal($token, isset($own[$at]) ? $begin : null);
            if ($literal !== null) {
                $code .= substr($this->text, $from, $token->pos - $from) . $literal;
                $from = $token->pos + \strlen($token->text);
            }
        }
        $last = $this->tokens[$end];

        return $code . substr($this->text, $from, $last->pos + \strlen($last->text) - $from);
    }

    /**
     * Returns the literal for a magic constant such as __LINE__; null for any other token.
     *
     * @param int|null $begin index of the closure's first token; null if the token is in a class inside the closure
     */
    private function literal(\PhpToken $token, ?int $begin): ?string
    {
        if ($token->is([\T_CLASS_C, \T_TRAIT_C])) {
            return $begin === null ? null : $this->classAround($begin, $token->id);
        }

        return match ($token->id) {
            \T_LINE => "({$token->line})", // in brackets, because a line number beside a "." would be a float
            \T_FILE => var_export($this->file, true),
            \T_DIR => var_export(\dirname($this->file), true),
            default => null,
        };
    }

    private function classAround(int $begin, int $constant): string
    {
        $keyword = $name = null;
        foreach ($this->classes as $first => [$at, $open, $last]) {
            // A closure in the constructor arguments of `new class(…) {` is outside of the anonymous class.
            if ($first < $begin && $begin < $last && ($begin < $at || $begin > $open)) {
                $keyword = $this->tokens[$at]; // the last such class is the innermost one
                $name = $this->tokens[$at + 1];
            }
        }
        $kind = $keyword?->id;
        $name = $name?->is(\T_STRING) === true ? $name->text : '';
        $isTrait = $kind === \T_TRAIT;
        // The class that uses a trait, and the name of an anonymous class, are known only when the code runs.
        if ($constant === \T_CLASS_C && ($isTrait || ($keyword !== null && $name === ''))) {
            return 'self::class';
        }

        $isMeant = $name !== '' && $isTrait === ($constant === \T_TRAIT_C);

        return var_export($isMeant ? ltrim("{$this->topLevel->namespace($begin)}\\{$name}", '\\') : '', true);
    }
}

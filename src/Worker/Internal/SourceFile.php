<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

/**
 * The closures in one version of a source file, with the namespace and imports of each. They are grouped by line,
 * because PHP reports the line on which a closure begins but not the column.
 */
final class SourceFile
{
    private const NAMES = [\T_STRING, \T_NAME_QUALIFIED, \T_NAME_FULLY_QUALIFIED];
    private const OPENING = ['(' => 1, '[' => 1, '{' => 1];
    private const CLOSING = [')' => 1, ']' => 1, '}' => 1];

    /** Statements that give other code access to the variables of a closure, and so to its $this. */
    private const SHARING_TOKENS = [\T_INCLUDE, \T_INCLUDE_ONCE, \T_REQUIRE, \T_REQUIRE_ONCE, \T_EVAL];

    /** Statements that can keep PHP from running the rest of the file. */
    private const BRANCHING_TOKENS = [
        \T_RETURN, \T_EXIT, \T_THROW, \T_GOTO, \T_IF, \T_SWITCH, \T_MATCH, \T_FOR, \T_FOREACH, \T_WHILE, \T_DO, \T_TRY,
    ];

    /** @var array<int, list<ClosureSource>> closures by the line of `fn` or `function` */
    private array $closures = [];

    /** @var array<string, true> top-level classes and functions; PHP refuses to declare one twice */
    private array $declared = [];

    /** @var list<\PhpToken> tokens without spaces and comments */
    private array $tokens;

    /** @var array<int, int> index of the matching bracket, by the index of each bracket */
    private array $partners = [];

    /** @var list<array{int, string}> index at which a namespace begins, and its name */
    private array $namespaces = [[0, '']];

    /** Whether PHP runs every top-level statement of the file. */
    private bool $runsCompletely = true;

    /** @var list<array{int, int, string, string, string}> index, namespace number, lower-case alias, kind, statement */
    private array $imports = [];

    /** @var list<array{int, int, int, string}> classes: index of first and last token, kind, and name or '' */
    private array $classes = [];

    private bool $isStrict = false;

    /** @throws \ParseError */
    public function __construct(
        private readonly string $file,
        public readonly string $text,
    ) {
        $this->tokens = array_values(array_filter(
            \PhpToken::tokenize($text, \TOKEN_PARSE),
            static fn(\PhpToken $token): bool => !$token->isIgnorable() || $token->is(\T_CLOSE_TAG),
        ));
        $this->pairBrackets();
        $this->readTopLevel();
        foreach ($this->tokens as $at => $token) {
            if ($token->is([\T_FN, \T_FUNCTION])) {
                $this->readClosure($at);
            } elseif ($this->isClass($at)) {
                $name = $this->tokens[$at + 1];
                $this->classes[] = [$at, $this->classEnd($at), $token->id, $name->is(\T_STRING) ? $name->text : ''];
            }
        }
        $this->tokens = $this->partners = $this->imports = $this->namespaces = $this->classes = [];
    }

    /** @return list<ClosureSource> */
    public function closuresOn(int $line): array
    {
        return $this->closures[$line] ?? [];
    }

    /** Returns whether both versions declare the same class or function, so that PHP cannot have loaded both. */
    public function excludes(self $other): bool
    {
        $both = array_intersect_key($this->declared, $other->declared);
        if ($this->runsCompletely && $other->runsCompletely) {
            return $both !== [];
        }

        // Only functions count: PHP declares them before it runs the file, which may end before it declares a class.
        return array_filter(
            array_keys($both),
            static fn(string $name): bool => str_starts_with($name, 'function '),
        ) !== [];
    }

    private function pairBrackets(): void
    {
        $open = [];
        foreach ($this->tokens as $at => $token) {
            $isLong = $token->is([\T_CURLY_OPEN, \T_DOLLAR_OPEN_CURLY_BRACES, \T_ATTRIBUTE]);
            if ($isLong || isset(self::OPENING[$this->singleCharacter($at)])) {
                $open[] = $at;
            } elseif (isset(self::CLOSING[$this->singleCharacter($at)])) {
                $partner = (int) array_pop($open);
                $this->partners[$at] = $partner;
                $this->partners[$partner] = $at;
            }
        }
    }

    /** Returns a token of one character; '' for any other token, such as part of a string. */
    private function singleCharacter(int $at): string
    {
        $token = $this->tokens[$at] ?? null;

        return $token !== null && $token->id < 256 ? $token->text : '';
    }

    /** Returns the index of the next token with this character or id, outside of brackets; or the last index. */
    private function indexOf(int $at, string|int $what): int
    {
        for (; isset($this->tokens[$at]); ++$at) {
            if (\is_int($what) ? $this->tokens[$at]->id === $what : $this->singleCharacter($at) === $what) {
                return $at;
            }
            $at = max($at, $this->partners[$at] ?? 0);
        }

        return \count($this->tokens) - 1;
    }

    /** Reads namespaces, imports and declarations. They are outside of all brackets except those of a namespace. */
    private function readTopLevel(): void
    {
        $namespace = '';
        for ($at = 0; isset($this->tokens[$at]); ++$at) {
            $token = $this->tokens[$at];
            $next = $this->tokens[$at + 1] ?? $token;
            if ($token->is(\T_NAMESPACE)) {
                $namespace = $next->is(self::NAMES) ? $next->text : '';
                $this->namespaces[] = [$at, $namespace];
                $at += $next->is(self::NAMES) ? 2 : 1; // skips the brace, too
            } elseif ($token->is(\T_DECLARE)) {
                $at = $this->readDirectives($at + 1);
            } elseif ($token->is(\T_USE) && $this->singleCharacter($at - 1) !== ')') {
                $at = $this->readImports($at);
            } elseif ($token->is(\T_FUNCTION) || $this->isClass($at)) {
                $named = $this->tokens[$at + ($next->is('&') ? 2 : 1)];
                if ($named->is(\T_STRING)) {
                    $kind = $token->is(\T_FUNCTION) ? 'function ' : '';
                    $this->declared[$kind . strtolower("{$namespace}\\{$named->text}")] = true;
                }
            } else {
                $this->runsCompletely = $this->runsCompletely && !$token->is(self::BRANCHING_TOKENS);
                $at = max($at, $this->partners[$at] ?? 0);
            }
        }
    }

    /** @return int index of the closing bracket */
    private function readDirectives(int $open): int
    {
        for ($at = $open + 1; $at < $this->partners[$open]; $at += 4) { // name, "=", value, ","
            $isStrict = strtolower($this->tokens[$at]->text) === 'strict_types' && $this->tokens[$at + 2]->text === '1';
            $this->isStrict = $this->isStrict || $isStrict;
        }

        return $this->partners[$open];
    }

    private function isClass(int $at): bool
    {
        return $this->tokens[$at]->is([\T_CLASS, \T_INTERFACE, \T_TRAIT, \T_ENUM])
            && !($at > 0 && $this->tokens[$at - 1]->is(\T_DOUBLE_COLON));
    }

    private function classEnd(int $at): int
    {
        return $this->partners[$this->indexOf($at, '{')];
    }

    /** @return int index of the semicolon */
    private function readImports(int $at): int
    {
        $end = $this->indexOf($at, ';');
        $begin = $at;
        $kind = $itemKind = $prefix = $name = $alias = '';
        for (++$at; $at <= $end; ++$at) {
            $token = $this->tokens[$at];
            if ($token->is([\T_FUNCTION, \T_CONST])) {
                $itemKind = strtolower($token->text) . ' ';
                $kind = $prefix === '' ? $itemKind : $kind;
            } elseif ($token->is(\T_AS)) {
                $alias = $this->tokens[++$at]->text;
            } elseif ($token->is(self::NAMES)) {
                $name = ltrim($token->text, '\\');
            } elseif ($token->is('{')) {
                [$prefix, $name] = ["{$name}\\", ''];
            } elseif ($token->is([',', '}', ';']) && $name !== '') {
                $alias = $alias === '' ? substr((string) strrchr("\\{$name}", '\\'), 1) : $alias;
                // Always with an alias: without one, PHP warns about the import of a global name.
                $statement = "use {$itemKind}{$prefix}{$name} as {$alias};";
                $this->imports[] = [$begin, \count($this->namespaces), strtolower($alias), $itemKind, $statement];
                $name = $alias = '';
                $itemKind = $kind;
            }
        }

        return $end;
    }

    private function readClosure(int $at): void
    {
        $isArrow = $this->tokens[$at]->is(\T_FN);
        $open = $at + ($this->tokens[$at + 1]->text === '&' ? 2 : 1);
        if ($this->singleCharacter($open) !== '(') {
            return; // a named function, or an import
        }
        $end = $this->partners[$open];
        $parameters = $this->variables($open);
        $uses = [];
        if ($this->tokens[$end + 1]->is(\T_USE)) {
            $uses = $this->variables($end + 2);
            $end = $this->partners[$end + 2];
        }
        $end = $isArrow
            ? $this->arrowEnd($this->indexOf($end + 1, \T_DOUBLE_ARROW) + 1)
            : $this->partners[$this->indexOf($end + 1, '{')];
        $isStatic = $at > 0 && $this->tokens[$at - 1]->is(\T_STATIC);
        $begin = $isStatic ? $at - 1 : $at;
        while ($begin > 0 && $this->singleCharacter($begin - 1) === ']') {
            $open = $this->partners[$begin - 1];
            if (!$this->tokens[$open]->is(\T_ATTRIBUTE)) {
                break;
            }
            $begin = $open;
        }
        $line = $this->tokens[$at]->line;
        $this->closures[$line][] = $this->extract($begin, $end, $isStatic, $parameters, $isArrow ? null : $uses);
    }

    /** @return list<string> names of the parameters or captured variables in these brackets */
    private function variables(int $open): array
    {
        $names = [];
        for ($at = $open + 1; $at < $this->partners[$open]; ++$at) {
            if ($this->tokens[$at]->is(\T_VARIABLE)) {
                $names[] = substr($this->tokens[$at]->text, 1);
            }
            $at = max($at, $this->partners[$at] ?? 0);
        }

        return $names;
    }

    /** Returns the index of the last token of an arrow function, which extends as far as an expression can. */
    private function arrowEnd(int $at): int
    {
        $ternaries = $yields = 0;
        for (; isset($this->tokens[$at]); ++$at) {
            $token = $this->tokens[$at];
            $character = $this->singleCharacter($at);
            $isOver = match (true) {
                isset(self::CLOSING[$character]), $character === ',', $character === ';' => true,
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
                $token->is(\T_FN) => $this->arrowEnd($this->indexOf($at, \T_DOUBLE_ARROW) + 1),
                $token->is(\T_FUNCTION), $this->isClass($at) => $this->classEnd($at),
                default => max($at, $this->partners[$at] ?? 0),
            };
        }

        return $at - 1;
    }

    /**
     * @param list<string>      $parameters
     * @param list<string>|null $uses       null for an arrow function
     */
    private function extract(int $begin, int $end, bool $isStatic, array $parameters, ?array $uses): ClosureSource
    {
        $words = $calls = [];
        $isLate = $usesThis = false;
        $code = '';
        $from = $this->tokens[$begin]->pos;
        [$classBegin, $classEnd] = [-1, -1];
        for ($at = $begin; $at <= $end; ++$at) {
            $token = $this->tokens[$at];
            if ($at > $classEnd && $this->isClass($at)) {
                [$classBegin, $classEnd] = [$this->indexOf($at, '{'), $this->classEnd($at)];
            }
            // The class begins at its brace: the constructor arguments of an anonymous class are code of the closure.
            $isInNestedClass = $classBegin < $at && $at < $classEnd;
            $isThis = $token->is(\T_VARIABLE) && $token->text === '$this';
            $usesThis = $usesThis || (!$isInNestedClass && ($isThis || $token->is(self::SHARING_TOKENS)));
            $mayBeCall = $token->is(\T_DOUBLE_COLON)
                && ($this->singleCharacter($at + 2) === '(' || $this->singleCharacter($at + 1) === '{');
            if (!$isInNestedClass && $mayBeCall) {
                $calls[] = [$this->tokens[$at - 1]->text, $this->tokens[$at + 1]->text];
            }
            $isLate = $isLate || LateBinding::isLate($token, $this->tokens[$at + 1] ?? $token);
            if ($token->is([\T_STRING, \T_NAME_QUALIFIED, \T_CLASS_C])) {
                $word = explode('\\', $token->text)[0];
                $words[strtolower($word)] = $word;
            }
            $literal = $this->literal($token, $isInNestedClass ? null : $begin);
            if ($literal !== null) {
                $code .= substr($this->text, $from, $token->pos - $from) . $literal;
                $from = $token->pos + \strlen($token->text);
            }
        }
        $last = $this->tokens[$end];
        $code .= substr($this->text, $from, $last->pos + \strlen($last->text) - $from);

        $preamble = $this->preamble($begin, $words);

        return new ClosureSource(
            $this->tokens[$begin]->line,
            $last->line,
            "{$preamble}return {$code};",
            \strlen($preamble),
            $isStatic,
            $parameters,
            $uses,
            $usesThis,
            $calls,
            $isLate,
            $isLate || isset($words['self']) || isset($words['parent']) || isset($words['__class__']),
        );
    }

    /**
     * Returns a literal for a constant that depends on the position of the code: its line, file, directory or class.
     *
     * @param int|null $begin index of the closure; null within a class that it declares
     */
    private function literal(\PhpToken $token, ?int $begin): ?string
    {
        if ($token->is([\T_CLASS_C, \T_TRAIT_C])) {
            return $begin === null ? null : $this->classAround($begin, $token->id);
        }

        return match ($token->id) {
            \T_LINE => (string) $token->line,
            \T_FILE => var_export($this->file, true),
            \T_DIR => var_export(\dirname($this->file), true),
            default => null,
        };
    }

    private function classAround(int $begin, int $constant): string
    {
        $isAround = static fn(array $class): bool => $class[0] < $begin && $begin < $class[1];
        $around = array_filter($this->classes, $isAround);
        [, , $kind, $name] = $around === [] ? [0, 0, 0, ''] : end($around);
        $isTrait = $kind === \T_TRAIT;
        if ($constant === \T_CLASS_C && ($isTrait || ($around !== [] && $name === ''))) {
            return 'self::class'; // the class is known when the code runs
        }

        $isMeant = $name !== '' && $isTrait === ($constant === \T_TRAIT_C);

        return var_export($isMeant ? ltrim("{$this->namespace($begin)}\\{$name}", '\\') : '', true);
    }

    private function namespace(int $at): string
    {
        $namespaces = array_filter($this->namespaces, static fn(array $namespace): bool => $namespace[0] <= $at);

        return $namespaces === [] ? '' : end($namespaces)[1];
    }

    /** @param array<string, string> $words words in the closure, by their lower case */
    private function preamble(int $begin, array $words): string
    {
        $namespace = $this->namespace($begin);
        $namespaces = \count(array_filter($this->namespaces, static fn(array $one): bool => $one[0] <= $begin));
        $code = $this->isStrict ? 'declare(strict_types=1);' : '';
        $code .= $namespace === '' ? '' : "namespace {$namespace};";
        $imported = [];
        foreach ($this->imports as [$at, $within, $alias, $kind, $statement]) {
            if ($at < $begin && $within === $namespaces && isset($words[$alias])) {
                $code .= $statement;
                $imported["{$kind}{$alias}"] = true;
            }
        }

        return $code . ($namespace === '' ? '' : self::ownNames($namespace, $words, $imported));
    }

    /**
     * Returns imports of the functions and constants of the namespace. Without these imports, PHP would silently use
     * global ones of the same name in a worker that lacks those of the namespace.
     *
     * @param array<string, string> $words    words as written, by their lower case
     * @param array<string, true>   $imported kinds and aliases of the imports that the file has
     */
    private static function ownNames(string $namespace, array $words, array $imported): string
    {
        $code = '';
        foreach ($words as $alias => $word) {
            $isOwnFunction = !isset($imported["function {$alias}"]) && \function_exists("{$namespace}\\{$word}");
            $isOwnConstant = !isset($imported["const {$alias}"]) && \defined("{$namespace}\\{$word}");
            $code .= $isOwnFunction ? "use function {$namespace}\\{$word};" : '';
            $code .= $isOwnConstant ? "use const {$namespace}\\{$word};" : '';
        }

        return $code;
    }
}

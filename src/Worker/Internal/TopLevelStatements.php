<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

/**
 * Reads the namespaces, imports, directives and declarations of a source file. Ignores statements in brackets, such as
 * the body of a function, class or `if`, but not those in the braces of a namespace. Each index is the index of a
 * token.
 */
final class TopLevelStatements
{
    /** Tokens of statements that can make PHP skip other statements of the file. */
    private const BRANCHING_TOKENS = [
        \T_RETURN, \T_EXIT, \T_THROW, \T_GOTO, \T_IF, \T_SWITCH, \T_MATCH, \T_FOR, \T_FOREACH, \T_WHILE, \T_DO, \T_TRY,
    ];

    /** @var array<string, true> lower-case names: 'namespace\class' or 'function namespace\name'; see SourceFile */
    public readonly array $declared;

    public readonly bool $runsCompletely;

    private bool $isStrict = false;

    /** @var list<array{int, string}> index at which a namespace begins, and its name */
    private array $namespaces = [[0, '']];

    /** @var list<array{int, int, string, string, string}> index, namespace number, lower-case alias, kind, statement */
    private array $imports = [];

    public function __construct(private readonly SourceTokens $source)
    {
        $declared = [];
        $runsCompletely = true;
        $namespace = '';
        for ($at = 0; isset($source->tokens[$at]); ++$at) {
            $token = $source->tokens[$at];
            $next = $source->tokens[$at + 1] ?? $token;
            if ($token->is(\T_NAMESPACE)) {
                $namespace = $next->is(SourceTokens::NAMES) ? $next->text : '';
                $this->namespaces[] = [$at, $namespace];
                $at += $next->is(SourceTokens::NAMES) ? 2 : 1; // also skips the name, and the brace or semicolon
            } elseif ($token->is(\T_DECLARE)) {
                $at = $this->readDirectives($at + 1);
            } elseif ($token->is(\T_USE) && $source->singleCharacter($at - 1) !== ')') {
                $at = $this->readImports($at);
            } elseif ($token->is(\T_FUNCTION) || $source->isClass($at)) {
                $named = $source->tokens[$at + ($next->is('&') ? 2 : 1)];
                if ($named->is(\T_STRING)) {
                    $kind = $token->is(\T_FUNCTION) ? 'function ' : '';
                    $declared[$kind . strtolower("{$namespace}\\{$named->text}")] = true;
                }
            } else {
                $runsCompletely = $runsCompletely && !$token->is(self::BRANCHING_TOKENS);
                $at = $source->skipBrackets($at);
            }
        }
        $this->declared = $declared;
        $this->runsCompletely = $runsCompletely;
    }

    /** @return string the namespace of the code at this index; '' for the global one */
    public function namespace(int $at): string
    {
        return $this->namespaces[$this->namespaceNumber($at) - 1][1];
    }

    /**
     * Returns statements to put before the code at this index. With them, the code means the same as in its file.
     *
     * @param array<string, string> $words names in the code, or first parts of qualified names, by lower-case name
     */
    public function preamble(int $begin, array $words): string
    {
        $namespace = $this->namespace($begin);
        $number = $this->namespaceNumber($begin);
        $code = $this->isStrict ? 'declare(strict_types=1);' : '';
        $code .= $namespace === '' ? '' : "namespace {$namespace};";
        $imported = [];
        foreach ($this->imports as [$at, $within, $alias, $kind, $statement]) {
            if ($at < $begin && $within === $number && isset($words[$alias])) {
                $code .= $statement;
                $imported["{$kind}{$alias}"] = true;
            }
        }

        return $code . ($namespace === '' ? '' : self::ownNames($namespace, $words, $imported));
    }

    /** @return int index of the closing bracket */
    private function readDirectives(int $open): int
    {
        $end = $this->source->partner($open);
        for ($at = $open + 1; $at < $end; $at += 4) { // name, "=", value, ","
            $name = strtolower($this->source->tokens[$at]->text);
            $isStrict = $name === 'strict_types' && $this->source->tokens[$at + 2]->text === '1';
            $this->isStrict = $this->isStrict || $isStrict;
        }

        return $end;
    }

    /** @return int index of the semicolon */
    private function readImports(int $at): int
    {
        $end = $this->source->indexOf($at, ';');
        $begin = $at;
        $kind = $itemKind = $prefix = $name = $alias = '';
        for (++$at; $at <= $end; ++$at) {
            $token = $this->source->tokens[$at];
            if ($token->is([\T_FUNCTION, \T_CONST])) {
                $itemKind = strtolower($token->text) . ' ';
                $kind = $prefix === '' ? $itemKind : $kind;
            } elseif ($token->is(\T_AS)) {
                $alias = $this->source->tokens[++$at]->text;
            } elseif ($token->is(SourceTokens::NAMES)) {
                $name = ltrim($token->text, '\\');
            } elseif ($token->is('{')) {
                [$prefix, $name] = ["{$name}\\", ''];
            } elseif ($token->is([',', '}', ';']) && $name !== '') {
                $alias = $alias === '' ? substr((string) strrchr("\\{$name}", '\\'), 1) : $alias;
                // The alias avoids PHP's warning that the import of a global name has no effect.
                $statement = "use {$itemKind}{$prefix}{$name} as {$alias};";
                $this->imports[] = [$begin, \count($this->namespaces), strtolower($alias), $itemKind, $statement];
                $name = $alias = '';
                $itemKind = $kind;
            }
        }

        return $end;
    }

    /** Returns how many namespaces begin before or at this index, including the global one at the start of the file. */
    private function namespaceNumber(int $at): int
    {
        return \count(array_filter($this->namespaces, static fn(array $namespace): bool => $namespace[0] <= $at));
    }

    /**
     * Returns imports of the namespace's functions and constants that the code uses. Without an import, a worker that
     * lacks the function or constant would silently use a global one of the same name.
     *
     * @param array<string, string> $words    see {@see preamble()}
     * @param array<string, true>   $imported imports of the file: kind, such as 'function ', and lower-case alias
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

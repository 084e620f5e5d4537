<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

/** The closures in one version of a file, by line, because PHP reports a closure's first line but not its column. */
final class SourceFile
{
    /** @var array<int, list<ClosureSource>> closures by the line of `fn` or `function` */
    public readonly array $closures;

    /** @var array<string, true> names of top-level classes and functions; PHP refuses to declare a name twice */
    private readonly array $declared;

    private readonly bool $runsCompletely;

    /** @throws \ParseError */
    public function __construct(string $file, public readonly string $text)
    {
        $tokens = new SourceTokens($text);
        $topLevel = new TopLevelStatements($tokens);
        $this->declared = $topLevel->declared;
        $this->runsCompletely = $topLevel->runsCompletely;
        $this->closures = (new ClosureReader($file, $text, $tokens, $topLevel))->closures();
    }

    /** Returns whether PHP cannot have loaded both versions, because both declare the same class or function. */
    public function excludes(self $other): bool
    {
        $both = array_intersect_key($this->declared, $other->declared);
        if ($this->runsCompletely && $other->runsCompletely) {
            return $both !== [];
        }

        // Only functions count: PHP declares them before the file runs. The run may end before PHP declares a class.
        return array_filter(
            array_keys($both),
            static fn(string $name): bool => str_starts_with($name, 'function '),
        ) !== [];
    }
}

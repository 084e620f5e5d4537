<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

/** The constructs of a shell line that are open at the current position. */
final class OpenConstructs
{
    /** The innermost construct; the line itself if no other is open. */
    public ShellConstruct $innermost;

    /** @var list<ShellConstruct> the constructs around the innermost one; the first is the line */
    private array $outer = [];

    public function __construct()
    {
        $this->innermost = new ShellConstruct(ShellConstruct::LINE);
    }

    /** @return int number of bytes that begin the construct */
    public function begin(string $kind): int
    {
        $this->outer[] = $this->innermost;
        $this->innermost = new ShellConstruct($kind);

        return \strlen($kind);
    }

    public function end(): void
    {
        $this->innermost = array_pop($this->outer) ?? $this->innermost;
    }

    public function contain(string $kind): bool
    {
        return \in_array($kind, array_column($this->all(), 'kind'), true);
    }

    public function containSubstitutionInQuotes(): bool
    {
        $kinds = array_column($this->all(), 'kind');
        $quotes = array_search(ShellConstruct::DOUBLE_QUOTES, $kinds, true);

        return $quotes !== false
            && \in_array(ShellConstruct::COMMAND_SUBSTITUTION, \array_slice($kinds, $quotes), true);
    }

    public function containDuplication(): bool
    {
        return \in_array(true, array_column($this->all(), 'isDuplication'), true);
    }

    public function containSubscript(): bool
    {
        return max(array_column($this->all(), 'openBrackets')) > 0;
    }

    /** Returns whether the current position is inside an assignment or the word after < or >. */
    public function containSingleValue(): bool
    {
        return \in_array(true, array_column($this->all(), 'hasOneValue'), true);
    }

    /** Returns the number of open expansions, such as $(...). */
    public function expansionDepth(): int
    {
        return \count(array_intersect(array_column($this->all(), 'kind'), ShellConstruct::EXPANSIONS));
    }

    /** @return non-empty-list<ShellConstruct> */
    private function all(): array
    {
        return [...$this->outer, $this->innermost];
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

/** The constructs of a shell line, such as quotes and $(...), that have begun but not ended at the current position. */
final class OpenConstructs
{
    public ShellConstruct $innermost;

    /** @var list<ShellConstruct> the constructs around the innermost one; the first is the line */
    private array $outer = [];

    public function __construct()
    {
        $this->innermost = new ShellConstruct(ShellConstruct::LINE);
    }

    public function __clone()
    {
        $this->innermost = clone $this->innermost;
    }

    /** @return int number of bytes that begin the construct */
    public function begin(string $kind): int
    {
        $this->outer[] = $this->innermost;
        $this->innermost = new ShellConstruct($kind, $this->innermost);

        return \strlen($kind);
    }

    public function end(): void
    {
        $outer = array_pop($this->outer);
        // A clone of this object shares the outer constructs, so they must not change.
        $this->innermost = $outer === null ? $this->innermost : clone $outer;
    }
}

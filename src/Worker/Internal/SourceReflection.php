<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Laravel\SerializableClosure\Support\ReflectionClosure;

/** Answers what the library asks of a closure from {@see SourceFiles}; the library guesses which of a line it is. */
final class SourceReflection extends ReflectionClosure
{
    private readonly ClosureSource $source;

    public function __construct(\Closure $closure)
    {
        parent::__construct($closure);
        $this->source = SourceFiles::closure($closure);
    }

    /** An expression, for that is what the library evaluates. */
    public function getCode(): string
    {
        return "eval('" . addcslashes($this->source->code, "'\\") . "')";
    }

    /** @return array<mixed> */
    public function getUseVariables(): array
    {
        return $this->source->captured($this);
    }

    public function isBindingRequired(): bool
    {
        return $this->source->usesThis;
    }

    public function isScopeRequired(): bool
    {
        return $this->source->usesItsClass;
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Admin;

/** Whether processes take requests, and what they depend on works. */
final readonly class Condition
{
    /**
     * @param string                     $problem why nobody takes requests; '' when somebody does
     * @param array<string, string|null> $checks  by name: why it failed, in one process that takes requests at least, or null
     */
    private function __construct(public string $problem, public array $checks) {}

    /** @param array<string, string|null> $checks */
    public static function ready(array $checks): self
    {
        return new self('', $checks);
    }

    /** None was up yet. */
    public static function starting(): self
    {
        return new self('starting', []);
    }

    /** None takes requests any more. */
    public static function draining(): self
    {
        return new self('draining', []);
    }

    /** None has room for another connection, nor one that it can close for it. */
    public static function full(): self
    {
        return new self('full', []);
    }

    /** None has answered. */
    public static function stuck(): self
    {
        return new self('stuck', []);
    }
}

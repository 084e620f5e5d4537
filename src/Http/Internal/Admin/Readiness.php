<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Admin;

/** State of the processes: whether they accept requests, and the results of the application's health checks. */
final readonly class Readiness
{
    /**
     * @param string                     $problem why no process accepts requests; '' if at least one does
     * @param array<string, string|null> $checks  by name: why the check failed in one of the processes that accept
     *                                            requests; null if it passed in all of them
     */
    private function __construct(public string $problem, public array $checks) {}

    /** @param array<string, string|null> $checks */
    public static function ready(array $checks): self
    {
        return new self('', $checks);
    }

    public static function starting(): self
    {
        return new self('starting', []);
    }

    public static function draining(): self
    {
        return new self('draining', []);
    }

    /** In each process that is not stopping, new connections have waited for a second or more, for lack of room. */
    public static function full(): self
    {
        return new self('full', []);
    }

    /** The supervisor did not answer within ProcessServers::TIMEOUT_FOR_HEALTH, or no process answered in time. */
    public static function stuck(): self
    {
        return new self('stuck', []);
    }
}

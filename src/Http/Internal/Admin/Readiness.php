<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Admin;

/** State of the processes: whether they accept requests, and the results of the application's health checks. */
final readonly class Readiness
{
    /**
     * @param string                     $problem why no process accepts requests; '' if at least one does
     * @param array<string, string|null> $checks  by name: why the check failed in a process that accepts requests; null
     *                                            if it passed in all such processes
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

    /** All processes that are not stopping have the maximum number of connections, and new connections wait. */
    public static function full(): self
    {
        return new self('full', []);
    }

    /** The supervisor, or each of its processes, does not respond in time (ProcessServers::TIMEOUT_FOR_HEALTH). */
    public static function stuck(): self
    {
        return new self('stuck', []);
    }
}

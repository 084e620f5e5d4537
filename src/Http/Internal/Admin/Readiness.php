<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Admin;

/** State of the processes: whether they accept requests, and the results of the application's health checks. */
final readonly class Readiness
{
    /** @var array<string, string|null> by check name: why the check failed in one of the processes; null if in none */
    public array $checks;

    /**
     * @param string $problem why no process accepts requests: 'starting', 'draining' (all are stopping), 'full' (new
     *     connections have waited for a second or more) or 'stuck' (no answer in time); '' if a process accepts them
     * @param array<string, string|null> ...$checks results by check name, for each process that accepts requests
     */
    public function __construct(public string $problem, array ...$checks)
    {
        $reasons = [];
        foreach ($checks as $ofProcess) {
            foreach ($ofProcess as $name => $reason) {
                $reasons[$name] ??= $reason;
            }
        }
        $this->checks = $reasons;
    }
}

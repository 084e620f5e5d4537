<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

/** A call of an HttpClient. The call is counted as failed at most once, even if several reads of its response fail. */
final class Call
{
    private bool $hasFailed = false;

    /** @param int $failedTotal number of failed calls of the client */
    public function __construct(private int &$failedTotal) {}

    /** Called when the call throws an exception, and when a later read of its response throws one. */
    public function countFailure(): void
    {
        $this->failedTotal += $this->hasFailed ? 0 : 1;
        $this->hasFailed = true;
    }
}

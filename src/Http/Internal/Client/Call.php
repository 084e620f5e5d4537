<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

use Spindle\Http\Client\RequestRetryPolicy;

/** A call of an HttpClient. The call is counted as failed at most once, even if several reads of its response fail. */
final class Call
{
    private bool $hasFailed = false;

    /** Number of retries by the {@see RequestRetryPolicy}, also of requests that follow a redirect. */
    public int $retries = 0;

    /** @param int $failedTotal counter of the client's failed calls */
    public function __construct(private int &$failedTotal) {}

    /** Counts a failure of the call itself, or of a later read of its response. */
    public function countFailure(): void
    {
        $this->failedTotal += $this->hasFailed ? 0 : 1;
        $this->hasFailed = true;
    }
}

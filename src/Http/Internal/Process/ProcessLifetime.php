<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;

/** Asks the supervisor for a replacement at a limit of requests or memory. The process serves until it is replaced. */
final class ProcessLifetime
{
    /** Nanoseconds after which the process asks again, because its replacement may have failed. */
    private const RETRY_NANOSECONDS = 30_000_000_000;

    /** A memory limit that is reached within this number of requests is too low for any process. */
    private const MIN_USEFUL_REQUESTS = 10;

    private int $requests = 0;

    /** Time by hrtime() before which the process does not ask for its replacement again. */
    private int $nextRequestAt = 0;

    /**
     * @param int                          $maxRequests        requests after which the process is replaced
     * @param int                          $maxMemoryBytes     bytes in use at which the process is replaced
     * @param \Closure(string, bool): void $requestReplacement called with the reason, and whether the limit is so low
     *     that every process would soon reach it
     */
    private function __construct(
        private readonly int $maxRequests,
        private readonly int $maxMemoryBytes,
        private readonly \Closure $requestReplacement,
    ) {}

    /**
     * Returns a handler that counts the requests, and asks for a replacement when a limit is reached.
     *
     * @param \Closure(ServerRequestInterface): ResponseInterface $handler
     * @param int|null $maxRequests reduced by up to a tenth at random, so that not all processes end at the same time
     * @param \Closure(string, bool): void $requestReplacement
     *
     * @return \Closure(ServerRequestInterface): ResponseInterface
     */
    public static function of(
        \Closure $handler,
        ?int $maxRequests,
        ?int $maxMemoryBytes,
        \Closure $requestReplacement,
    ): \Closure {
        $maxRequests = $maxRequests === null ? \PHP_INT_MAX : $maxRequests - random_int(0, intdiv($maxRequests, 10));
        $lifetime = new self($maxRequests, $maxMemoryBytes ?? \PHP_INT_MAX, $requestReplacement);

        return static function (ServerRequestInterface $request) use ($handler, $lifetime): ResponseInterface {
            $lifetime->count();

            return $handler($request);
        };
    }

    private function count(): void
    {
        if (
            ++$this->requests < $this->maxRequests && memory_get_usage() < $this->maxMemoryBytes
            || hrtime(true) < $this->nextRequestAt
        ) {
            return;
        }
        $this->nextRequestAt = (int) hrtime(true) + self::RETRY_NANOSECONDS;
        $count = "{$this->requests} " . ($this->requests === 1 ? 'request' : 'requests');
        $this->requests >= $this->maxRequests
            ? ($this->requestReplacement)("it has handled {$count}", false)
            : ($this->requestReplacement)(
                'it uses ' . memory_get_usage() . " bytes of memory after {$count}",
                $this->requests <= self::MIN_USEFUL_REQUESTS,
            );
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Http\Client;

use Psr\Http\Message\ResponseInterface;
use Spindle\Http\Internal\Answer\HttpDate;
use Spindle\Internal\Backoff;
use Spindle\Internal\Excerpt;
use Spindle\Internal\NumberRange;

/**
 * Decides which requests are sent again, how often, and after which pause. A request is sent again only if its body can
 * be sent again, and if the pause ends before {@see RequestOptions::$timeout} has passed.
 */
final class RequestRetryPolicy
{
    /** Statuses of servers that are overloaded, or that can't be reached through a proxy: RFC 9110, 15.6, RFC 6585. */
    public const STATUSES = [429, 502, 503, 504];

    /** Methods that have the same effect when a request is sent twice: RFC 9110, 9.2.2. */
    public const METHODS = ['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE'];

    /** @var list<int> */
    public readonly array $onStatus;

    private readonly Backoff $backoff;

    /**
     * @param int $retries maximum number of retries of a call; 0 for none
     * @param bool $onFailure whether to retry after a {@see ConnectFailedException}, {@see ConnectionLostException} or
     *     {@see RequestTimeoutException}
     * @param int|list<int> $onStatus statuses of responses after which the request is retried; [] for none
     * @param list<string> $methods methods of requests that may be sent twice. A request with another method is retried
     *     only after a {@see ConnectFailedException}, because the server has not received it
     * @param float $delay seconds before the first retry; 0 for no pause before any retry
     * @param float $factor number by which each delay is multiplied to get the next delay
     * @param float $maxDelay upper limit of a delay, in seconds. If the server asks for a longer delay by its header
     *     Retry-After, the request is not retried
     * @param float $jitter largest share of a delay that is subtracted at random: from 0 (nothing) to 1 (the whole
     *     delay)
     *
     * @throws \ValueError when a number is out of its range, or a method is not in capital letters
     */
    public function __construct(
        public readonly int $retries,
        public readonly bool $onFailure = true,
        int|array $onStatus = self::STATUSES,
        public readonly array $methods = self::METHODS,
        public readonly float $delay = 0.1,
        public readonly float $factor = 2.0,
        public readonly float $maxDelay = 60.0,
        public readonly float $jitter = 0.5,
    ) {
        NumberRange::checkCount('The number of retries', $retries, 0);
        $statuses = \is_int($onStatus) ? [$onStatus] : $onStatus;
        array_map(self::checkStatus(...), $statuses);
        array_map(self::checkMethod(...), $methods);
        $this->onStatus = $statuses;
        $this->backoff = new Backoff($delay, $factor, $maxDelay, $jitter);
    }

    /**
     * @param ResponseInterface|HttpClientException $outcome result of the last attempt
     * @param string $method method of the request, such as GET
     * @param int $attempts number of attempts so far, at least 1
     */
    public function shouldRetry(ResponseInterface|HttpClientException $outcome, string $method, int $attempts): bool
    {
        $maySendTwice = \in_array($method, $this->methods, true);

        return $attempts <= $this->retries && match (true) {
            $outcome instanceof ConnectFailedException => $this->onFailure,
            $outcome instanceof ConnectionLostException,
            $outcome instanceof RequestTimeoutException => $this->onFailure && $maySendTwice,
            $outcome instanceof ResponseInterface => $maySendTwice
                && \in_array($outcome->getStatusCode(), $this->onStatus, true)
                && self::retryAfter($outcome) <= $this->maxDelay,
            default => false,
        };
    }

    /**
     * Returns the pause in seconds after an attempt: exponential backoff with jitter. If the response has a header
     * Retry-After (RFC 9110, 10.2.3), this backoff follows the time that the server asks for. Otherwise, all clients
     * would repeat their requests at the same moment.
     *
     * @param int $attempts number of attempts so far, at least 1
     * @param ResponseInterface|null $response response of the last attempt; null if it had none
     */
    public function delayAfter(int $attempts, ?ResponseInterface $response = null): float
    {
        return $this->backoff->after($attempts) + ($response === null ? 0.0 : self::retryAfter($response));
    }

    private static function checkStatus(mixed $status): void
    {
        if (!\is_int($status) || $status < 200 || $status > 599) {
            $given = \is_scalar($status) ? Excerpt::of(var_export($status, true), 80) : get_debug_type($status);

            throw new \ValueError("The statuses of onStatus must be whole numbers from 200 to 599, not {$given}");
        }
    }

    private static function checkMethod(mixed $method): void
    {
        if (!\is_string($method) || $method === '' || $method !== strtoupper($method)) {
            $given = \is_scalar($method) ? Excerpt::of(var_export($method, true), 80) : get_debug_type($method);

            throw new \ValueError("The methods must be in capital letters, such as POST, not {$given}");
        }
    }

    /** Returns the seconds of the header Retry-After, which has a number of seconds or a date; 0 if it is absent. */
    private static function retryAfter(ResponseInterface $response): float
    {
        $value = $response->getHeaderLine('Retry-After');
        if (preg_match('/^\d++$/D', $value) === 1) {
            return (float) $value;
        }
        $now = microtime(true);

        return max(0.0, (HttpDate::parse($value, (int) $now) ?? $now) - $now);
    }
}

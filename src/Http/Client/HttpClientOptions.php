<?php

declare(strict_types=1);

namespace Spindle\Http\Client;

use Spindle\Http\Internal\Message\Fields;
use Spindle\Internal\NumberRange;

/** Options of a client. An origin is the scheme, host and port of a URL. Times are in seconds; INF means no limit. */
final readonly class HttpClientOptions
{
    /**
     * @param int $maxConnectionsPerHost maximum number of connections to an origin with the same proxy and TLS options.
     *     Further requests wait until a connection is free, in the order of their calls
     * @param float $acquireTimeout maximum wait for a free connection
     * @param int $maxWaiting maximum number of requests that wait for a connection to the same origin
     * @param float $idleTimeout time after which an idle connection is closed
     * @param float $maxLifetime age at which a connection is closed, but not before its current request has ended
     * @param string $userAgent User-Agent field of requests that have no such field; '' for none
     * @param RequestOptions $request options for each call that passes no options
     * @param CookieJar|null $cookies jar that stores the cookies of responses and adds them to requests; null for none
     *
     * @throws \ValueError when a number is out of its range
     * @throws \InvalidArgumentException when the user agent has a control character
     */
    public function __construct(
        public int $maxConnectionsPerHost = 64,
        public float $acquireTimeout = 30.0,
        public int $maxWaiting = 10_000,
        public float $idleTimeout = 60.0,
        public float $maxLifetime = 600.0,
        public string $userAgent = 'Spindle',
        public RequestOptions $request = new RequestOptions(),
        public ?CookieJar $cookies = null,
    ) {
        NumberRange::checkTimeLimits([
            'acquireTimeout' => $acquireTimeout,
            'idleTimeout' => $idleTimeout,
            'maxLifetime' => $maxLifetime,
        ]);
        if ($userAgent !== '') {
            Fields::values('User-Agent', $userAgent);
        }
        NumberRange::checkPositiveCounts(['maxConnectionsPerHost' => $maxConnectionsPerHost]);
        if ($maxWaiting < 0) {
            throw new \ValueError("The option maxWaiting must be 0 or more, not {$maxWaiting}");
        }
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Http\Client;

use Spindle\Internal\NumberRange;
use Spindle\TlsOptions;

/** Limits and behaviour of requests. Times are in seconds; INF means no limit. */
final readonly class RequestOptions
{
    /**
     * @param float $connectTimeout limit for the look-up of the host, the connection and the TLS handshake together
     * @param float $firstByteTimeout limit from the end of the request to the first byte of the response
     * @param float $readTimeout maximum wait without progress, while the request is sent or the response arrives
     * @param float $timeout limit for the time from the call to the end of the response's body
     * @param int $maxRedirects number of redirects that the client follows. A further redirect makes the request fail.
     *     With 0, the caller gets the redirect as the response. Credentials are not sent to another origin
     * @param int $maxBodyBytes maximum size, after decompression, of a body that `getContents()` or `(string)` returns.
     *     The body's `read()` has no such limit
     * @param bool $decompress whether to ask the server for gzip, and to decompress the response's body
     * @param int $expectContinueBytes body size from which the client sends `Expect: 100-continue`. The client then
     *     waits up to 1 s for the server's permission to send the body. A body of unknown size is treated as if it had
     *     this size. PHP_INT_MAX for never
     * @param Proxy|null $proxy null for a direct connection
     * @param TlsOptions $tls certificates for https
     * @param bool $blocksPrivateAddresses whether to refuse servers whose address is not public, such as 127.0.0.1, to
     *     prevent SSRF. Each address is checked, also after a redirect. With a proxy, no address is checked
     * @param bool $waitsInQueue true to wait for a connection as long as other requests to the origin make progress, up
     *     to `$timeout`. The request fails after {@see HttpClientOptions::$acquireTimeout} seconds in which no fiber
     *     has read a response or sent a body on any connection to the origin. {@see HttpClientOptions::$maxWaiting}
     *     does not apply
     * @param RequestRetryPolicy|null $retries decides which requests are sent again; null for none. `$timeout` limits
     *     the time of all attempts together. The other limits apply to each attempt
     *
     * @throws \ValueError when a number is out of its range
     */
    public function __construct(
        public float $connectTimeout = 10.0,
        public float $firstByteTimeout = 60.0,
        public float $readTimeout = 30.0,
        public float $timeout = 300.0,
        public int $maxRedirects = 0,
        public int $maxBodyBytes = 67_108_864,
        public bool $decompress = true,
        public int $expectContinueBytes = 1_048_576,
        public ?Proxy $proxy = null,
        public TlsOptions $tls = new TlsOptions(),
        public bool $blocksPrivateAddresses = false,
        public bool $waitsInQueue = false,
        public ?RequestRetryPolicy $retries = null,
    ) {
        NumberRange::checkTimeLimits([
            'connectTimeout' => $connectTimeout,
            'firstByteTimeout' => $firstByteTimeout,
            'readTimeout' => $readTimeout,
            'timeout' => $timeout,
        ]);
        foreach ([
            'maxRedirects' => $maxRedirects,
            'maxBodyBytes' => $maxBodyBytes,
            'expectContinueBytes' => $expectContinueBytes,
        ] as $name => $number) {
            if ($number < 0) {
                throw new \ValueError("The option {$name} must be 0 or more, not {$number}");
            }
        }
    }
}

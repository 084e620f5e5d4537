<?php

declare(strict_types=1);

namespace Spindle\Http\Client;

use Spindle\Internal\NumberRange;
use Spindle\TlsOptions;

/** Limits and behaviour of requests. Times are in seconds; INF for no limit. */
final readonly class RequestOptions
{
    /**
     * @param float $connectTimeout limit for the look-up of the host, the connection and the TLS handshake together
     * @param float $firstByteTimeout limit from the end of the request to the first byte of the response
     * @param float $readTimeout limit for a pause without progress, while the request is sent or the response arrives
     * @param float $timeout limit for everything, from the call to the end of the response's body
     * @param int $maxRedirects maximum number of redirects to follow, before the request fails; with 0, the caller gets
     *     the redirect. Credentials are not sent to another origin
     * @param int $maxBodyBytes maximum decompressed size that `getContents()` and `(string)` return. `read()` has no
     *     limit
     * @param bool $decompress whether to ask the server for gzip, and to decompress it
     * @param int $expectContinueBytes size from which the client sends `Expect: 100-continue`, and waits up to 1 s for
     *     permission before it sends the body; also applies to bodies of unknown size. PHP_INT_MAX for never
     * @param Proxy|null $proxy null for a direct connection
     * @param TlsOptions $tls certificates for https
     * @param bool $blocksPrivateAddresses whether to refuse servers whose address is not public, such as 127.0.0.1. The
     *     client checks the address that it connects to, also after a redirect. With a proxy, it checks no address
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

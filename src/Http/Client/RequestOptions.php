<?php

declare(strict_types=1);

namespace Spindle\Http\Client;

use Spindle\Internal\NumberRange;
use Spindle\TlsOptions;

/** Limits and behaviour of requests. Times are in seconds; INF for no limit. */
final readonly class RequestOptions
{
    /**
     * @param float $connectTimeout to look up the host, to connect, and for the TLS handshake
     * @param float $firstByteTimeout from the end of the request to the first byte of the response
     * @param float $readTimeout while the response or the request's body makes no progress
     * @param float $timeout for everything, from the call to the end of the response's body
     * @param int $maxRedirects number of redirects to follow. Credentials are not sent to another origin
     * @param int $maxContentBytes maximum decompressed size that `getContents()` and `(string)` return. `read()` has no
     *     limit
     * @param bool $decompress whether to ask for, and to decompress, gzip
     * @param int $expectContinueBytes minimum size of a request body for `Expect: 100-continue`, with a wait of up to
     *     1 s. A body of unknown size always uses it. PHP_INT_MAX for never
     * @param Proxy|null $proxy null for a direct connection
     * @param TlsOptions $tls certificates for https
     * @param bool $blocksPrivateAddresses whether to refuse servers whose address is not public, such as 127.0.0.1. The
     *     check applies to the address that the client connects to, also after a redirect
     *
     * @throws \ValueError when a number is out of its range
     */
    public function __construct(
        public float $connectTimeout = 10.0,
        public float $firstByteTimeout = 60.0,
        public float $readTimeout = 30.0,
        public float $timeout = 300.0,
        public int $maxRedirects = 0,
        public int $maxContentBytes = 67_108_864,
        public bool $decompress = true,
        public int $expectContinueBytes = 1_048_576,
        public ?Proxy $proxy = null,
        public TlsOptions $tls = new TlsOptions(),
        public bool $blocksPrivateAddresses = false,
    ) {
        NumberRange::timeLimits([
            'connectTimeout' => $connectTimeout,
            'firstByteTimeout' => $firstByteTimeout,
            'readTimeout' => $readTimeout,
            'timeout' => $timeout,
        ]);
        foreach ([
            'maxRedirects' => $maxRedirects,
            'maxContentBytes' => $maxContentBytes,
            'expectContinueBytes' => $expectContinueBytes,
        ] as $name => $number) {
            if ($number < 0) {
                throw new \ValueError("The option {$name} must be 0 or more, not {$number}");
            }
        }
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

use Spindle\TlsOptions;

/** Merges the TLS options of a Guzzle or Symfony request with the TLS options of the HttpClient. */
final class AdapterTls
{
    private function __construct() {}

    /**
     * @param string|null $caFile null for the file of `$default`
     * @param string|null $certificate null for that of `$default`, with the key of `$default` if `$key` is null
     * @param string|null $key null if `$certificate` contains the key
     *
     * @throws \ValueError when a file can't be read
     */
    public static function merge(
        TlsOptions $default,
        ?string $caFile,
        ?string $certificate,
        ?string $key,
        bool $verifyPeer,
    ): TlsOptions {
        return new TlsOptions(
            caFile: $caFile ?? $default->caFile,
            certificate: $certificate ?? $default->certificate,
            key: $key ?? ($certificate === null ? $default->key : null),
            serverName: $default->serverName,
            verifyPeer: $verifyPeer,
        );
    }
}

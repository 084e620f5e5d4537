<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

use Spindle\TlsOptions;

/** Merges the TLS options of a Guzzle or Symfony request with the TLS options of the HttpClient. */
final class AdapterTls
{
    /**
     * @param string|null $caFile null to use the file of `$default`
     * @param string|null $certificate null to use the certificate of `$default`, and also its key if `$key` is null
     * @param string|null $key null if the file `$certificate` also has the key
     *
     * @throws \ValueError when a file can't be read, or there is a key without a certificate
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

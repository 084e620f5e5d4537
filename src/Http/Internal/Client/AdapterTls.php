<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

use Spindle\TlsOptions;

/** Merges the TLS options of another client's request with those of the HTTP client that sends it. */
final class AdapterTls
{
    private function __construct() {}

    /**
     * @param string|null $rootCertificate these three files: null for that of `$default`
     * @param string|null $key null for none if there is a `$certificate`, which then has the key
     *
     * @throws \ValueError when a file can't be read
     */
    public static function merge(
        TlsOptions $default,
        ?string $rootCertificate,
        ?string $certificate,
        ?string $key,
        bool $verifies,
    ): TlsOptions {
        return new TlsOptions(
            rootCertificate: $rootCertificate ?? $default->rootCertificate,
            certificate: $certificate ?? $default->certificate,
            key: $key ?? ($certificate === null ? $default->key : null),
            serverName: $default->serverName,
            verifies: $verifies,
        );
    }
}

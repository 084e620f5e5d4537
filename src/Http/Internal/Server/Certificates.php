<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

use Spindle\Http\HttpServerOptions;
use Spindle\Http\ListenException;
use Spindle\Internal\Launcher\Process\Files;

/** Checks certificates, and returns PHP's TLS options. PHP reads the files again for each connection. */
final class Certificates
{
    private function __construct() {}

    /**
     * @return array<string, mixed> options of a stream context
     *
     * @throws ListenException when a certificate is missing, or a key does not belong to it
     */
    public static function context(HttpServerOptions $options, string $address): array
    {
        if (!\extension_loaded('openssl')) {
            throw ListenException::because($address, 'TLS needs the extension openssl');
        }
        if ($options->certificate === null) {
            throw ListenException::withoutCertificate($address);
        }
        self::check($options->certificate, $options->key ?? $options->certificate, $address);
        foreach ($options->certificates as $path) {
            self::check($path, $path, $address);
        }

        return [
            'local_cert' => $options->certificate,
            'local_pk' => $options->key ?? $options->certificate,
            'SNI_server_certs' => $options->certificates,
            'verify_peer' => false,
            'disable_compression' => true,
            'honor_cipher_order' => true,
            'alpn_protocols' => 'http/1.1',
        ] + ($options->certificates === [] ? ['SNI_enabled' => false] : []);
    }

    /** @throws ListenException */
    private static function check(string $certificate, string $key, string $address): void
    {
        $chain = Files::read($certificate);
        $private = Files::read($key);
        if ($chain === false || $private === false) {
            throw ListenException::because(
                $address,
                'the file ' . ($chain === false ? $certificate : $key) . " can't be read",
            );
        }
        if (!openssl_x509_check_private_key($chain, $private)) {
            throw ListenException::because(
                $address,
                "{$certificate} is not a PEM certificate, or {$key} is not its private key",
            );
        }
    }
}

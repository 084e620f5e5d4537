<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Connect;

use Spindle\Internal\Warnings;
use Spindle\Postgres\PostgresHost;
use Spindle\Postgres\PostgresOptions;
use Spindle\Postgres\TlsMode;

/** TLS settings of the connections to one host. */
final readonly class Tls
{
    public const VERSIONS = \STREAM_CRYPTO_METHOD_TLSv1_2_CLIENT | \STREAM_CRYPTO_METHOD_TLSv1_3_CLIENT;

    public function __construct(public TlsMode $mode, private PostgresHost $host, private PostgresOptions $options) {}

    /** @return resource a context for a stream that is not connected yet */
    public function context()
    {
        $isIp = filter_var($this->host->host, \FILTER_VALIDATE_IP) !== false;

        return stream_context_create([
            'socket' => ['tcp_nodelay' => true],
            'ssl' => [
                'verify_peer' => $this->mode->verifies(),
                'verify_peer_name' => $this->mode === TlsMode::VerifyFull,
                'allow_self_signed' => !$this->mode->verifies(),
                'peer_name' => $this->host->host,
                // RFC 6066 does not allow IP addresses in SNI.
                'SNI_enabled' => !$isIp,
                'disable_compression' => true,
                'capture_peer_cert' => true,
                // Without a passphrase, OpenSSL would ask for one at the terminal, which blocks the process.
                'passphrase' => '',
                ...array_filter([
                    'cafile' => $this->options->tlsRootCertificate,
                    'capath' => $this->options->tlsRootCertificate === null && $this->mode->verifies()
                        ? SystemStore::folder()
                        : null,
                    'local_cert' => $this->options->tlsCertificate,
                    'local_pk' => $this->options->tlsKey,
                ], static fn(?string $file): bool => $file !== null),
            ],
        ]);
    }

    /**
     * Returns the channel binding data of the type tls-server-end-point: a hash of the server's certificate. The hash
     * function is that of the certificate's signature, with SHA-256 instead of MD5 and SHA-1.
     *
     * @see https://www.rfc-editor.org/rfc/rfc5929#section-4.1
     *
     * @return string|null null without a certificate, or if its signature's name has no hash function, as with Ed25519
     */
    public static function channelBindingHash(?\OpenSSLCertificate $certificate): ?string
    {
        $parsed = $certificate !== null ? openssl_x509_parse($certificate) : false;
        $signature = $parsed !== false && \is_string($parsed['signatureTypeSN'] ?? null)
            ? $parsed['signatureTypeSN']
            : '';
        if (
            $certificate === null
            || preg_match('~(?:^|[-_])(md5|sha1|sha224|sha256|sha384|sha512)(?:$|[-_])~i', $signature, $part) !== 1
        ) {
            return null;
        }
        $hash = strtolower($part[1]);
        $fingerprint = openssl_x509_fingerprint(
            $certificate,
            \in_array($hash, ['md5', 'sha1'], true) ? 'sha256' : $hash,
            true,
        );

        return $fingerprint === false ? null : $fingerprint;
    }

    /** Returns a clause with the reason for a failed handshake, from PHP's warning. */
    public function explain(string $warning): string
    {
        $detail = Warnings::clause($warning);

        return match (true) {
            str_contains(
                $warning,
                ' did not match expected ',
            ) => "its TLS certificate is for another host than '{$this->host->host}'",
            str_contains(
                $warning,
                'certificate verify failed',
            ) => "its TLS certificate can't be verified: it is not valid at this time, or no authority in "
                . ($this->options->tlsRootCertificate ?? "the system's store")
                    . ' has signed it (tlsRootCertificate or sslrootcert names a file of authorities to trust)',
            $detail === '' => 'the server closed the connection during the TLS handshake',
            default => "the TLS handshake failed: {$detail}",
        };
    }
}

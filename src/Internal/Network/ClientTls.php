<?php

declare(strict_types=1);

namespace Spindle\Internal\Network;

use Spindle\Internal\Warnings;
use Spindle\TlsOptions;

/** TLS settings of a client: certificates, and which properties of the server's certificate are verified. */
final readonly class ClientTls
{
    public const CRYPTO_METHOD = \STREAM_CRYPTO_METHOD_TLSv1_2_CLIENT | \STREAM_CRYPTO_METHOD_TLSv1_3_CLIENT;

    /**
     * @param string      $serverName   name of the server, sent as SNI and expected in its certificate
     * @param bool        $verifyPeer   whether a trusted authority must have signed the certificate
     * @param bool        $verifyName   whether the certificate must be for `$serverName`
     * @param string|null $caFile       path of a PEM file with trusted authorities; null for those of the system
     * @param string|null $certificate  path of a PEM file with the client's certificate; null for none
     * @param string|null $key          path of a PEM file with the private key; null if `$certificate` contains it
     * @param string      $advice       appended to the message about a certificate that can't be verified
     * @param string      $protocol     protocol that is offered with ALPN; '' for none
     * @param string      $nameAdvice   appended to the message about a certificate for another host
     */
    public function __construct(
        public string $serverName,
        private bool $verifyPeer = true,
        private bool $verifyName = true,
        private ?string $caFile = null,
        public ?string $certificate = null,
        private ?string $key = null,
        private string $advice = '',
        private string $protocol = '',
        private string $nameAdvice = '',
    ) {}

    /** @param string $host server name if the options have none; `$advice` and `$protocol` are as in the constructor */
    public static function of(TlsOptions $options, string $host, string $advice, string $protocol = ''): self
    {
        return new self(
            $options->serverName ?? $host,
            $options->verifyPeer,
            $options->verifyPeer,
            caFile: $options->caFile,
            certificate: $options->certificate,
            key: $options->key,
            advice: $advice,
            protocol: $protocol,
            nameAdvice: ' (TlsOptions::$serverName sets the name that is expected)',
        );
    }

    /** @return array<string, mixed> options of a stream context, for its key 'ssl' */
    public function contextOptions(): array
    {
        // RFC 6066, section 3 allows neither a trailing dot nor an IP address in SNI.
        $name = preg_replace('~\.$~D', '', $this->serverName);

        return [
            'verify_peer' => $this->verifyPeer,
            'verify_peer_name' => $this->verifyName,
            'allow_self_signed' => !$this->verifyPeer,
            'peer_name' => $name,
            'SNI_enabled' => filter_var($name, \FILTER_VALIDATE_IP) === false,
            'disable_compression' => true,
            'capture_peer_cert' => true,
            // If no passphrase were set, OpenSSL would ask for one at the terminal, which blocks the process.
            'passphrase' => '',
            ...array_filter([
                'cafile' => $this->caFile,
                'capath' => $this->caFile === null && $this->verifyPeer ? SystemStore::folder() : null,
                'local_cert' => $this->certificate,
                'local_pk' => $this->key,
                'alpn_protocols' => $this->protocol === '' ? null : $this->protocol,
            ], static fn(?string $value): bool => $value !== null),
        ];
    }

    public static function isCertificateAlert(string $reason): bool
    {
        return preg_match('/ alert (?:.*certificate|unknown ca)/', $reason) === 1;
    }

    /**
     * Returns whether the server rejected the client's certificate before the server read the first request. With TLS
     * 1.2, returns false: the server may have asked for a certificate only after it had read the request.
     *
     * @param resource $stream
     */
    public static function isRefusedBeforeRequest($stream, string $reason): bool
    {
        return self::isCertificateAlert($reason)
            && (stream_get_meta_data($stream)['crypto']['protocol'] ?? '') === 'TLSv1.3';
    }

    public function explain(string $warning): string
    {
        $detail = Warnings::socketReason($warning);

        return match (true) {
            str_contains($warning, ' did not match expected ')
                => "its TLS certificate is for another host than '{$this->serverName}'{$this->nameAdvice}",
            str_contains($warning, 'certificate verify failed')
                => "its TLS certificate can't be verified: it is not valid at this time, or no authority in "
                    . ($this->caFile ?? "the system's store") . " has signed it{$this->advice}",
            $detail === '' => 'the server closed the connection during the TLS handshake',
            $detail === 'wrong version number', str_starts_with($detail, 'packet length too long') // OpenSSL 3.5.5
                => 'the answer to the TLS handshake was not TLS. Does TLS use another port?',
            default => "the TLS handshake failed: {$detail}",
        };
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Connect;

use Amp\CancelledException;
use Spindle\Internal\Network\ClientStream;
use Spindle\Internal\Network\ClientTls;
use Spindle\Internal\Network\Deadline;
use Spindle\Internal\Network\NetworkException;
use Spindle\Postgres\Internal\Protocol\FrontendMessages;
use Spindle\Postgres\PostgresHost;
use Spindle\Postgres\PostgresOptions;
use Spindle\Postgres\ProtocolException;
use Spindle\Postgres\TlsMode;

/** Requests TLS from a server, and computes the channel binding data that bind a login to the server's certificate. */
final class Tls
{
    /** @throws NetworkException when the certificate must contain the host's name, but the host is a socket's folder */
    public static function settings(TlsMode $mode, PostgresHost $host, PostgresOptions $options): ?ClientTls
    {
        if ($mode === TlsMode::VerifyFull && str_starts_with($host->host, '/')) {
            throw NetworkException::because(
                "the server's certificate can't be checked for the folder '{$host->host}', which is no host name. Set "
                    . "the host to the name in the certificate, or the TLS mode to 'verify-ca'",
            );
        }

        return $mode === TlsMode::Disable ? null : new ClientTls(
            $host->host,
            $mode->verifies(),
            $mode === TlsMode::VerifyFull,
            $options->tlsCaFile,
            $options->tlsCertificate,
            $options->tlsKey,
            ' (tlsCaFile or sslrootcert names a file of authorities to trust)',
        );
    }

    /**
     * @see https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-FLOW-SSL
     *
     * @return bool true when the TLS handshake must follow; false if the server does not offer TLS
     *
     * @throws NetworkException when the server answers with an error or not at all
     * @throws CancelledException
     * @throws ProtocolException when the answer does not come from a PostgreSQL server
     */
    public static function request(ClientStream $stream, Deadline $deadline): bool
    {
        $for = 'the answer to the TLS request';
        $stream->write(FrontendMessages::SSL_REQUEST, $deadline, $for);
        $answer = $stream->read($deadline, $for, 1);
        if ($answer === 'N') {
            return false;
        }
        if ($answer === 'E') {
            // An attacker may have sent this answer, so the text of the error is not shown.
            throw NetworkException::because('the server answered the TLS request with an error');
        }
        if ($answer !== 'S') {
            throw ProtocolException::notPostgres($answer . $stream->peek());
        }
        if ($stream->peek() !== '') {
            throw ProtocolException::malformed(
                'unencrypted bytes followed the answer to the TLS request. They may be an attack',
            );
        }

        return true;
    }

    /**
     * Returns the channel binding data of the type tls-server-end-point: a hash of the server's certificate. The hash
     * function is that of the certificate's signature; SHA-256 replaces MD5 and SHA-1.
     *
     * @see https://www.rfc-editor.org/rfc/rfc5929#section-4.1
     *
     * @return string|null null if there is no certificate, or the certificate's signature algorithm names no hash
     *                     function (Ed25519, RSA-PSS)
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
}

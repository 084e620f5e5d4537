<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pgsql;

use Spindle\Postgres\AuthenticationMethod;
use Spindle\Postgres\ChannelBinding;
use Spindle\Postgres\Internal\Connect\Endpoint;
use Spindle\Postgres\Internal\Connect\PasswordFile;
use Spindle\Postgres\PostgresOptions;
use Spindle\Postgres\TlsMode;
use Spindle\Postgres\UnsupportedException;

/**
 * Encodes options as libpq's connection string. The keywords that libpq would otherwise read from the environment or
 * from a file have values here, except for rarely used ones such as PGSERVICE.
 *
 * @see https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-PARAMKEYWORDS
 */
final class Conninfo
{
    /** A file that does not exist, because libpq has no value for "no file". */
    private const NO_FILE = '/nonexistent/spindle';

    /** Files in which operating systems keep trusted certificate authorities. */
    private const AUTHORITY_FILES = [
        '/etc/ssl/certs/ca-certificates.crt',
        '/etc/pki/tls/certs/ca-bundle.crt',
        '/etc/ssl/ca-bundle.pem',
        '/etc/ssl/cert.pem',
    ];

    /** @throws UnsupportedException when libpq would log in with methods that the options do not allow */
    public static function of(PostgresOptions $options, Endpoint $endpoint): string
    {
        $password = self::password($options, $endpoint);
        $tls = $options->tlsFor($endpoint->host);
        $values = [
            'host' => $endpoint->host->host,
            'hostaddr' => (string) $endpoint->ip,
            'port' => (string) $endpoint->host->port,
            'user' => $options->user,
            'password' => $password,
            'passfile' => self::NO_FILE,
            'dbname' => $options->database,
            'application_name' => $options->applicationName,
            'client_encoding' => 'UTF8',
            'options' => '',
            'target_session_attrs' => 'any',
            'gssencmode' => 'disable',
            'requirepeer' => '',
            'keepalives_idle' => '60',
            'keepalives_interval' => '10',
            'keepalives_count' => '6',
            ...self::tls($options, $tls),
            ...self::authentication($options, $endpoint, $tls, $password !== ''),
        ];
        $text = '';
        foreach ($values as $name => $value) {
            $text .= "{$name}='" . addcslashes($value, "'\\") . "' ";
        }

        return $text;
    }

    /**
     * Whether libpq may send the server a proof of the password that is not allowed, as versions before 16 do. The
     * measures of {@see authentication()} protect the password from third parties, but not from the server.
     */
    public static function maySendForbiddenProof(PostgresOptions $options, Endpoint $endpoint): bool
    {
        return self::version() < 16
            && $options->channelBinding !== ChannelBinding::Require
            && array_diff(['md5', 'password'], array_column($options->authentication, 'value')) !== []
            && self::password($options, $endpoint) !== '';
    }

    private static function password(PostgresOptions $options, Endpoint $endpoint): string
    {
        $file = $options->passwordFile;

        return $options->password()
            ?? ($file === null ? '' : PasswordFile::find(
                $file,
                $endpoint->host,
                $options->database,
                $options->user,
            ) ?? '');
    }

    /** Returns libpq's major version. */
    public static function version(): int
    {
        return (int) \PGSQL_LIBPQ_VERSION;
    }

    /** @return array<string, string> */
    private static function tls(PostgresOptions $options, TlsMode $mode): array
    {
        $certificate = $options->tlsCertificate ?? self::NO_FILE;

        return [
            'sslmode' => $mode->value,
            // Without this value, libpq uses a file in the user's home, and verifies the certificate if there is one.
            'sslrootcert' => $mode->verifies() ? $options->tlsRootCertificate ?? self::authorities() : self::NO_FILE,
            'sslcert' => $certificate,
            'sslkey' => $options->tlsKey ?? $certificate,
            'sslcrl' => self::NO_FILE,
            'sslcompression' => '0',
            'ssl_min_protocol_version' => 'TLSv1.2',
            'channel_binding' => $options->channelBinding->value,
            ...(self::version() >= 17 ? ['sslnegotiation' => 'postgres'] : []),
        ];
    }

    private static function authorities(): string
    {
        $locations = \extension_loaded('openssl') ? openssl_get_cert_locations() : [];
        $files = [
            getenv('SSL_CERT_FILE'),
            $locations['ini_cafile'] ?? '',
            $locations['default_cert_file'] ?? '',
            ...self::AUTHORITY_FILES,
        ];
        foreach ($files as $file) {
            if (\is_string($file) && $file !== '' && is_file($file)) {
                return $file;
            }
        }

        throw UnsupportedException::with(
            'Checking a certificate without tlsRootCertificate',
            'the file with the trusted authorities of this system was not found',
        );
    }

    /**
     * Returns keywords that limit the authentication methods to the allowed ones, which libpq 16 and later support.
     * Before version 16, libpq sends any proof that the server requests. So the password must be protected in another
     * way: the connection stays on this machine, the server's certificate is verified, or channel binding is required.
     *
     * @return array<string, string>
     *
     * @throws UnsupportedException when nothing protects the password and not all methods that need one are allowed, or
     *     when a login without a password is not allowed
     */
    private static function authentication(
        PostgresOptions $options,
        Endpoint $endpoint,
        TlsMode $tls,
        bool $hasPassword,
    ): array {
        $allowed = $options->authentication;
        if (self::version() >= 16) {
            return ['require_auth' => implode(',', array_column($allowed, 'value'))];
        }
        $safe = $endpoint->host->isLocal()
            || $tls->verifies()
            || $options->channelBinding === ChannelBinding::Require
            || !$hasPassword;
        $weak = \in_array(AuthenticationMethod::Md5, $allowed, true)
            && \in_array(AuthenticationMethod::Password, $allowed, true);
        if (!\in_array(AuthenticationMethod::None, $allowed, true) || !$safe && !$weak) {
            throw UnsupportedException::with(
                "A login at {$endpoint} with only the allowed methods",
                'libpq '
                    . self::version()
                    . " sends the password in whatever form the server requests. Verify the server's certificate, "
                    . 'allow all methods, or use libpq 16',
            );
        }

        return [];
    }
}

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
 * Options as libpq's connection string. Everything is named that libpq would take from the environment or from files of its own otherwise.
 *
 * @see https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-PARAMKEYWORDS
 */
final class Conninfo
{
    /** For libpq there is no way to name no file. */
    private const NO_FILE = '/nonexistent/spindle';

    /** Where systems keep the authorities they trust, in one file. */
    private const AUTHORITIES = ['/etc/ssl/certs/ca-certificates.crt', '/etc/pki/tls/certs/ca-bundle.crt', '/etc/ssl/ca-bundle.pem', '/etc/ssl/cert.pem'];

    /**
     * @throws UnsupportedException when libpq can't be held to what the options ask for
     */
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
     * Whether libpq would give the server a password in a form that is not allowed. Those before 16 do. What keeps it from others then
     * ({@see authentication()}) does not keep the server itself from asking for more than it may.
     */
    public static function mayGiveTooMuch(PostgresOptions $options, Endpoint $endpoint): bool
    {
        return self::version() < 16
            && $options->channelBinding !== ChannelBinding::Require
            && array_diff(['md5', 'password'], array_column($options->authentication, 'value')) !== []
            && self::password($options, $endpoint) !== '';
    }

    private static function password(PostgresOptions $options, Endpoint $endpoint): string
    {
        $file = $options->passwordFile;

        return $options->password() ?? ($file === null ? '' : PasswordFile::find($file, $endpoint->host, $options->database, $options->user) ?? '');
    }

    /** Of libpq, the major version. */
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
            // Without one libpq looks into the user's home, and with one there checks more than was asked for.
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
        $places = \extension_loaded('openssl') ? openssl_get_cert_locations() : [];
        $files = [getenv('SSL_CERT_FILE'), $places['ini_cafile'] ?? '', $places['default_cert_file'] ?? '', ...self::AUTHORITIES];
        foreach ($files as $file) {
            if (\is_string($file) && $file !== '' && is_file($file)) {
                return $file;
            }
        }

        throw UnsupportedException::with('Checking a certificate without tlsRootCertificate', 'the file of the authorities that this system trusts is not found');
    }

    /**
     * libpq before 16 gives the server the proof that it asks for, be it the password itself. So there has to be another reason why nobody else
     * gets it: the connection does not leave the machine, the server's certificate is checked, or channel binding is required.
     *
     * @return array<string, string>
     */
    private static function authentication(PostgresOptions $options, Endpoint $endpoint, TlsMode $tls, bool $hasPassword): array
    {
        $allowed = $options->authentication;
        if (self::version() >= 16) {
            return ['require_auth' => implode(',', array_column($allowed, 'value'))];
        }
        $safe = $endpoint->host->isLocal() || $tls->verifies() || $options->channelBinding === ChannelBinding::Require || !$hasPassword;
        $weak = \in_array(AuthenticationMethod::Md5, $allowed, true) && \in_array(AuthenticationMethod::Password, $allowed, true);
        if (!\in_array(AuthenticationMethod::None, $allowed, true) || !$safe && !$weak) {
            throw UnsupportedException::with(
                "A login at {$endpoint} by no other method than those allowed",
                'libpq ' . self::version() . " sends the password in whatever form the server asks for. Have the server's certificate checked, allow all methods, take libpq 16",
            );
        }

        return [];
    }
}

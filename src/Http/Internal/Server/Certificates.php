<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

use Spindle\Http\HttpServerOptions;
use Spindle\Http\ListenException;
use Spindle\Http\SupervisorOptions;
use Spindle\Internal\Launcher\Process\Files;
use Spindle\Internal\Warnings;
use Spindle\Internal\WorkingDirectory;

/** Checks certificates, and returns PHP's TLS options. PHP reads the files again for each connection. */
final class Certificates
{
    /** The supported versions of TLS, as an argument of stream_socket_enable_crypto(). */
    public const METHOD = \STREAM_CRYPTO_METHOD_TLSv1_2_SERVER | \STREAM_CRYPTO_METHOD_TLSv1_3_SERVER;

    /** Key of a stream context for the files of all names; PHP's own option has only those without a fault. */
    private const ALL_NAMES = 'spindle_certificates';

    /** @var array<string, list<int>> state of files in which the last check found no fault, by path */
    private static array $checked = [];

    private function __construct() {}

    /**
     * @return array<string, mixed> options of a stream context
     *
     * @throws ListenException when PHP can't load a certificate or its key
     */
    public static function context(HttpServerOptions $options, string $address): array
    {
        if (!\extension_loaded('openssl')) {
            throw ListenException::because($address, 'TLS needs the extension openssl');
        }
        if ($options->certificate === null) {
            throw ListenException::withoutCertificate($address);
        }
        $paths = self::paths($options);
        $fault = self::fault((string) $paths['local_cert'], (string) $paths['local_pk'])
            ?? array_values(self::faults($paths[self::ALL_NAMES]))[0]
            ?? null;
        if ($fault !== null) {
            throw ListenException::because($address, $fault);
        }

        return $paths + [
            // If no passphrase were set, OpenSSL would ask for one at the terminal, which blocks the process.
            'passphrase' => '',
            'verify_peer' => false,
            'disable_compression' => true,
            'honor_cipher_order' => true,
            'alpn_protocols' => 'http/1.1',
        ];
    }

    /**
     * Sets relative paths again, after the process has changed to the directory of another release.
     *
     * @param array<string, resource> $sockets listening sockets by address
     */
    public static function setPaths(array $sockets, SupervisorOptions $options): void
    {
        foreach ($sockets as $address => $socket) {
            foreach (str_starts_with($address, 'tls://') ? self::paths($options) : [] as $name => $value) {
                stream_context_set_option($socket, 'ssl', $name, $value);
            }
        }
    }

    /**
     * @return array{
     *     local_cert: ?string,
     *     local_pk: ?string,
     *     SNI_enabled: bool,
     *     SNI_server_certs: array<string, string>,
     *     spindle_certificates: array<string, string>,
     * } absolute paths, because a handler may change the working directory
     */
    private static function paths(HttpServerOptions|SupervisorOptions $options): array
    {
        $names = array_map(WorkingDirectory::absolute(...), $options->certificates);

        return [
            'local_cert' => WorkingDirectory::absolute($options->certificate),
            'local_pk' => WorkingDirectory::absolute($options->key ?? $options->certificate),
            'SNI_enabled' => $names !== [],
            'SNI_server_certs' => $names,
            self::ALL_NAMES => $names,
        ];
    }

    /**
     * Excludes the names (SNI) whose files have a fault now. With these files, PHP would refuse the connections of all
     * names, or OpenSSL would ask for a passphrase at the terminal.
     *
     * @param resource $stream a connection whose handshake has not begun
     *
     * @return array<string, string> faults, by name
     */
    public static function excludeFaultyNames($stream): array
    {
        /** @var array{ssl: array<string, array<string, string>>} */
        $options = stream_context_get_options($stream);
        $names = $options['ssl'][self::ALL_NAMES];
        $faults = self::faults($names);
        $usable = array_diff_key($names, $faults);
        if ($usable !== $options['ssl']['SNI_server_certs']) {
            stream_context_set_option($stream, 'ssl', 'SNI_enabled', $usable !== []);
            stream_context_set_option($stream, 'ssl', 'SNI_server_certs', $usable);
        }

        return $faults;
    }

    /**
     * Checks the files again that have changed or had a fault. A check needs as much time as PHP needs to load a file.
     *
     * @param array<string, string> $files files with a certificate and its key, by name
     *
     * @return array<string, string> faults, by name
     */
    private static function faults(array $files): array
    {
        $faults = [];
        foreach ($files as $name => $file) {
            clearstatcache();
            $stat = Warnings::suppressed(static fn() => stat($file));
            // Another change in the same second might not change the state.
            $isSettled = $stat !== false && $stat['ctime'] < time() - 1;
            $state = $isSettled ? [$stat['dev'], $stat['ino'], $stat['size'], $stat['ctime']] : [];
            if ($state === [] || $state !== (self::$checked[$file] ?? [])) {
                $fault = self::fault($file, $file);
                $fault === null ? self::$checked[$file] = $state : $faults[$name] = $fault;
            }
        }

        return $faults;
    }

    /** Lets PHP load the files for a socket that is not connected. So all rules of PHP and OpenSSL apply. */
    private static function fault(string $certificate, string $key): ?string
    {
        // A passphrase that no key has: for the files of names, OpenSSL would ask even for an empty one.
        $options = ['local_cert' => $certificate, 'local_pk' => $key, 'passphrase' => "\n", 'verify_peer' => false];
        $context = stream_context_create(['ssl' => $options]);
        while (openssl_error_string() !== false); // forgets earlier errors
        [$isUsable, $warning] = Warnings::of(static function () use ($context): bool {
            $socket = stream_socket_server('tcp://0.0.0.0:0', $code, $message, \STREAM_SERVER_BIND, $context);

            return $socket !== false
                && stream_set_blocking($socket, false)
                && stream_socket_enable_crypto($socket, true, self::METHOD) !== false;
        });
        if ($isUsable) {
            return null;
        }
        $isKey = str_contains($warning, 'private key');
        if ($isKey && str_contains((string) Files::read($key), 'ENCRYPTED')) {
            return "the private key in {$key} is encrypted. The server needs a key without a passphrase";
        }
        $error = openssl_error_string();
        $reason = $error === false ? strtok(Warnings::reason($warning), ';') : Warnings::socketReason($error);
        $file = $isKey ? "the private key in {$key}" : "the certificate in {$certificate}";

        return "{$file} can't be used: {$reason}";
    }
}

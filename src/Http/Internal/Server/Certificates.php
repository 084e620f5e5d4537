<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

use Spindle\Http\HttpServerOptions;
use Spindle\Http\ListenException;
use Spindle\Http\SupervisorOptions;
use Spindle\Internal\Launcher\Process\Files;
use Spindle\Internal\Warnings;
use Spindle\Internal\WorkingDirectory;

/** Checks certificates, and returns TLS options for stream contexts. PHP reads the files for each connection. */
final class Certificates
{
    public const CRYPTO_METHOD = \STREAM_CRYPTO_METHOD_TLSv1_2_SERVER | \STREAM_CRYPTO_METHOD_TLSv1_3_SERVER;

    /** Context option for the files of all host names (SNI). PHP's option SNI_server_certs lacks files with a fault. */
    private const ALL_NAMES = 'spindle_certificates';

    /** @var array<string, list<int>> fingerprints of files in which the last check found no fault, by path */
    private static array $usableFingerprints = [];

    /**
     * @param array<mixed> $certificates by host name
     *
     * @throws \ValueError for a name that PHP refuses or that no client can request, and for a value that is no path
     */
    public static function checkOption(array $certificates): void
    {
        foreach ($certificates as $name => $path) {
            if (!\is_string($name) || $name === '' || str_ends_with($name, '.')) {
                throw new \ValueError(
                    'The keys of the option certificates must be host names without a trailing dot, such as'
                        . " \"example.com\", not \"{$name}\"",
                );
            }
            if (!\is_string($path)) {
                throw new \ValueError(\sprintf(
                    'Each value of the option certificates must be the path of a PEM file with a certificate chain and'
                        . ' its key. The value for "%s" is of type %s',
                    $name,
                    get_debug_type($path),
                ));
            }
        }
    }

    /**
     * @return array<string, mixed> options of a stream context
     *
     * @throws ListenException when ext-openssl or the certificate is missing, or PHP can't load a certificate or key
     */
    public static function context(HttpServerOptions $options, string $address): array
    {
        if (!\extension_loaded('openssl')) {
            throw ListenException::because($address, 'TLS needs the extension openssl');
        }
        if ($options->certificate === null) {
            throw ListenException::withoutCertificate($address);
        }
        $fileOptions = self::fileOptions($options);
        clearstatcache(true); // PHP caches the targets of symbolic links for minutes
        $fault = self::fault((string) $fileOptions['local_cert'], (string) $fileOptions['local_pk'])
            ?? array_values(self::faults($fileOptions[self::ALL_NAMES]))[0]
            ?? null;
        if ($fault !== null) {
            throw ListenException::because($address, $fault);
        }

        return $fileOptions + [
            // If no passphrase were set, OpenSSL would ask for one at the terminal, which blocks the process.
            'passphrase' => '',
            'verify_peer' => false,
            'disable_compression' => true,
            'honor_cipher_order' => true,
            'alpn_protocols' => 'http/1.1',
        ];
    }

    /**
     * Checks the default certificate again, after the process has changed to the directory of another release of the
     * application. Relative paths of certificates then mean other files.
     *
     * @param array<string, resource> $sockets listening sockets by address
     *
     * @throws ListenException when PHP can't load the certificate or its key
     */
    public static function checkDefault(array $sockets, SupervisorOptions $options): void
    {
        $address = array_key_first(self::tlsSockets($sockets));
        if ($address === null) {
            return;
        }
        $files = self::fileOptions($options);
        $fault = self::fault((string) $files['local_cert'], (string) $files['local_pk']);
        if ($fault !== null) {
            throw ListenException::because($address, $fault);
        }
    }

    /**
     * Resolves relative paths of certificates again, after the process has changed to the directory of another release.
     *
     * @param array<string, resource> $sockets listening sockets by address
     */
    public static function updatePaths(array $sockets, SupervisorOptions $options): void
    {
        foreach (self::tlsSockets($sockets) as $socket) {
            foreach (self::fileOptions($options) as $name => $value) {
                stream_context_set_option($socket, 'ssl', $name, $value);
            }
        }
    }

    /**
     * Adds the certificates (SNI) of an application to sockets that were opened before the application was loaded.
     *
     * @param array<string, resource> $sockets listening sockets by address
     *
     * @return array<string, string> faults of the application's certificates, by host name
     *
     * @throws ListenException when the default certificate in the options is not the one of a socket
     */
    public static function addApplicationCertificates(array $sockets, HttpServerOptions $options): array
    {
        $added = self::fileOptions($options);
        $secure = self::tlsSockets($sockets);
        foreach ($secure as $address => $socket) {
            /** @var array{local_cert: string, local_pk: string, spindle_certificates: array<string, string>} */
            $current = stream_context_get_options($socket)['ssl'];
            $addedFiles = self::defaultFiles([ // if the application omits an option, the socket's value counts
                'local_cert' => $added['local_cert'] ?? $current['local_cert'],
                'local_pk' => $added['local_pk'] ?? $current['local_pk'],
            ]);
            $currentFiles = self::defaultFiles($current);
            if ($addedFiles !== $currentFiles) {
                throw ListenException::because(
                    $address,
                    "its certificate is {$currentFiles}, but the options of the application have {$addedFiles}. Remove"
                        . ' the options certificate and key from the application, or set the same files',
                );
            }
            $names = $added[self::ALL_NAMES] + $current[self::ALL_NAMES];
            stream_context_set_option($socket, 'ssl', 'SNI_enabled', $names !== []);
            stream_context_set_option($socket, 'ssl', 'SNI_server_certs', $names);
            stream_context_set_option($socket, 'ssl', self::ALL_NAMES, $names);
        }

        return $secure === [] ? [] : self::faults($added[self::ALL_NAMES]);
    }

    /**
     * @param array<string, resource> $sockets listening sockets by address
     *
     * @return array<string, resource> the sockets with TLS
     */
    public static function tlsSockets(array $sockets): array
    {
        return array_filter(
            $sockets,
            static fn(string $address): bool => str_starts_with($address, 'tls://'),
            \ARRAY_FILTER_USE_KEY,
        );
    }

    /** @param array{local_cert: string, local_pk: string, ...} $options */
    private static function defaultFiles(array $options): string
    {
        $files = array_map(static function (string $file): string {
            $target = realpath($file);

            return $target === false ? $file : $target;
        }, [$options['local_cert'], $options['local_pk']]);

        return implode(' with the key ', array_unique($files));
    }

    /**
     * Makes PHP follow changed symbolic links to certificate files. Removes host names (SNI) whose file now has a fault
     * from the stream's options. With a faulty file, PHP would refuse connections to all host names, or OpenSSL would
     * ask for a passphrase at the terminal.
     *
     * @param resource $stream a connection whose handshake has not begun
     *
     * @return array<string, string> faults, by host name
     */
    public static function prepareHandshake($stream): array
    {
        clearstatcache(true); // clearing one path would keep the cached links of its parent directories
        /** @var array{ssl: array<string, array<string, string>>} */
        $options = stream_context_get_options($stream);
        $files = $options['ssl'][self::ALL_NAMES];
        $faults = self::faults($files);
        $usable = array_diff_key($files, $faults);
        if ($usable !== $options['ssl']['SNI_server_certs']) {
            stream_context_set_option($stream, 'ssl', 'SNI_enabled', $usable !== []);
            stream_context_set_option($stream, 'ssl', 'SNI_server_certs', $usable);
        }

        return $faults;
    }

    /**
     * @return array{
     *     local_cert: ?string,
     *     local_pk: ?string,
     *     SNI_enabled: bool,
     *     SNI_server_certs: array<string, string>,
     *     spindle_certificates: array<string, string>,
     * } with absolute paths, because a handler may change the working directory
     */
    private static function fileOptions(HttpServerOptions|SupervisorOptions $options): array
    {
        $filesByName = array_map(WorkingDirectory::absolute(...), $options->certificates);

        return [
            'local_cert' => WorkingDirectory::absolute($options->certificate),
            'local_pk' => WorkingDirectory::absolute($options->key ?? $options->certificate),
            'SNI_enabled' => $filesByName !== [],
            'SNI_server_certs' => $filesByName,
            self::ALL_NAMES => $filesByName,
        ];
    }

    /**
     * Checks files that are new, have changed, or had a fault in the last check. Other files are not checked again,
     * because a check is slow: PHP loads the file.
     *
     * @param array<string, string> $files files with a certificate and its key, by host name
     *
     * @return array<string, string> faults, by host name
     */
    private static function faults(array $files): array
    {
        $faults = [];
        foreach ($files as $name => $file) {
            $fingerprint = self::fingerprint($file);
            if ($fingerprint !== null && $fingerprint === (self::$usableFingerprints[$file] ?? null)) {
                continue;
            }
            $fault = self::fault($file, $file);
            if ($fault !== null) {
                $faults[$name] = $fault;
            } elseif ($fingerprint !== null) {
                self::$usableFingerprints[$file] = $fingerprint;
            }
        }

        return $faults;
    }

    /**
     * @return list<int>|null numbers that differ after each change of the file, and of the process's user. Null if the
     *         file is missing. Also null if its last change is so recent that a further change may get the same ctime
     *         (in seconds)
     */
    private static function fingerprint(string $file): ?array
    {
        $stat = Warnings::suppressed(static fn() => stat($file));

        return $stat !== false && $stat['ctime'] < time() - 1
            ? [$stat['dev'], $stat['ino'], $stat['size'], $stat['ctime'], self::user()]
            : null;
    }

    /** Returns the user with whose rights this process reads files; 0 if it is unknown. */
    private static function user(): int
    {
        return \function_exists('posix_geteuid') ? posix_geteuid() : 0;
    }

    /** Makes PHP load the files for a socket that is not connected. Returns the fault; null if PHP can use them. */
    private static function fault(string $certificate, string $key): ?string
    {
        // No key has the passphrase "\n", so OpenSSL rejects each encrypted key here. An encrypted key must not get
        // into SNI_server_certs. For such a key, OpenSSL would ask for the passphrase at the terminal, in spite of the
        // option passphrase of context().
        $options = ['local_cert' => $certificate, 'local_pk' => $key, 'passphrase' => "\n", 'verify_peer' => false];
        $context = stream_context_create(['ssl' => $options]);
        while (openssl_error_string() !== false); // drops the errors of earlier OpenSSL calls
        [$isUsable, $warning] = Warnings::of(static function () use ($context): bool {
            $socket = stream_socket_server('tcp://0.0.0.0:0', $code, $message, \STREAM_SERVER_BIND, $context);

            return $socket !== false
                && stream_set_blocking($socket, false)
                && stream_socket_enable_crypto($socket, true, self::CRYPTO_METHOD) !== false;
        });

        $isUsable = $isUsable && $warning === ''; // for a key of another type than its certificate, PHP only warns

        return $isUsable ? null : self::explain($warning, openssl_error_string(), $certificate, $key);
    }

    private static function explain(string $warning, string|false $error, string $certificate, string $key): string
    {
        $isKey = stripos($warning, 'private key') !== false;
        $text = $isKey ? (string) Files::read($key) : '';
        if ($isKey && $text !== '' && !str_contains($text, 'PRIVATE KEY')) {
            return "{$key} contains no private key. Add the key to this file. Only the key of the default certificate"
                . ' can be in another file: --key or the option key';
        }
        if (str_contains($text, 'ENCRYPTED')) {
            return "the private key in {$key} is encrypted. The server needs a key without a passphrase";
        }
        $reason = match (true) {
            str_contains($warning, 'does not match') => 'it does not match the certificate',
            $error === false => strtok(Warnings::reason($warning), ';'),
            default => Warnings::socketReason($error),
        };
        $file = $isKey ? "the private key in {$key}" : "the certificate in {$certificate}";

        return "{$file} can't be used: {$reason}";
    }
}

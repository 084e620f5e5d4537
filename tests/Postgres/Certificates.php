<?php

declare(strict_types=1);

namespace Spindle\Tests\Postgres;

use Spindle\Tests\Text;

/**
 * A certificate authority for one test. Its own certificate and those that it issues are files in a directory of the
 * test.
 */
final class Certificates
{
    /** File of the authority's own certificate. */
    public readonly string $authority;

    private readonly \OpenSSLCertificate $certificate;

    private readonly \OpenSSLAsymmetricKey $key;

    private int $serial = 1;

    public function __construct(private readonly string $directory, string $name = 'Spindle test authority')
    {
        $this->key = self::newKey();
        $extensions = "basicConstraints = critical, CA:TRUE\nkeyUsage = critical, keyCertSign, cRLSign\n";
        $this->certificate = $this->sign($name, $this->key, null, $extensions, 1, 'sha256');
        $this->authority = "{$directory}/authority-" . bin2hex(random_bytes(4)) . '.pem';
        openssl_x509_export_to_file($this->certificate, $this->authority);
    }

    /**
     * Passes a new authority to $use, and removes its files afterwards.
     *
     * @template T
     *
     * @param \Closure(self): T $use
     *
     * @return T
     */
    public static function during(\Closure $use): mixed
    {
        $directory = sys_get_temp_dir() . '/spindle-test-' . bin2hex(random_bytes(6));
        mkdir($directory);
        try {
            return $use(new self($directory));
        } finally {
            foreach (Text::names($directory) as $name) {
                unlink("{$directory}/{$name}");
            }
            rmdir($directory);
        }
    }

    /**
     * @param string $host an IP address or a name, also with a wildcard such as *.example.test
     *
     * @return array{string, string} the files of the certificate and of its key
     */
    public function forServer(string $host, string $digest = 'sha256'): array
    {
        return $this->issue($host, self::server($host), 1, $digest);
    }

    /**
     * @return array{string, string} the files of a certificate that expires at the moment it is made, and of its key
     */
    public function expiredForServer(string $host): array
    {
        return $this->issue($host, self::server($host), 0, 'sha256');
    }

    /** @return array{string, string} the files of a certificate that is its own authority, and of its key */
    public function selfSigned(string $host): array
    {
        return $this->issue($host, self::server($host), 1, 'sha256', isSelfSigned: true);
    }

    /** @return array{string, string} the files of a server's certificate and of its key, encrypted with a passphrase */
    public function withEncryptedKey(string $host, string $passphrase = 'secret'): array
    {
        [$certificate, $key] = $this->forServer($host);
        $private = openssl_pkey_get_private((string) file_get_contents($key));
        \assert($private !== false);
        openssl_pkey_export_to_file($private, $key, $passphrase);

        return [$certificate, $key];
    }

    /** @return array{string, string} the files of a server's certificate and of its key, which OpenSSL refuses */
    public function withWeakKey(string $host): array
    {
        $options = ['private_key_type' => \OPENSSL_KEYTYPE_RSA, 'private_key_bits' => 512];

        return $this->issue($host, self::server($host), 1, 'sha256', key: self::newKey($options));
    }

    /** @return array{string, string} the files of a server's certificate, and of a key of another type */
    public function withKeyOfAnotherType(string $host): array
    {
        $rsa = self::newKey(['private_key_type' => \OPENSSL_KEYTYPE_RSA, 'private_key_bits' => 2048]);
        [$certificate] = $this->issue($host, self::server($host), 1, 'sha256', key: $rsa);
        [, $key] = $this->forServer($host);

        return [$certificate, $key];
    }

    /** @return array{string, string} the files of the certificate and of its key */
    public function forClient(string $user): array
    {
        return $this->issue($user, "extendedKeyUsage = clientAuth\n", 1, 'sha256');
    }

    private static function server(string $host): string
    {
        $kind = filter_var($host, \FILTER_VALIDATE_IP) === false ? 'DNS' : 'IP';

        return "extendedKeyUsage = serverAuth\nsubjectAltName = {$kind}:{$host}\n";
    }

    /** @return array{string, string} */
    private function issue(
        string $name,
        string $extensions,
        int $days,
        string $digest,
        bool $isSelfSigned = false,
        ?\OpenSSLAsymmetricKey $key = null,
    ): array {
        $key ??= self::newKey();
        $certificate = $this->sign(
            $name,
            $key,
            $isSelfSigned ? null : $this->certificate,
            "basicConstraints = CA:FALSE\n{$extensions}",
            $days,
            $digest,
        );
        $file = "{$this->directory}/" . bin2hex(random_bytes(4));
        $files = ["{$file}.crt", "{$file}.key"];
        openssl_x509_export_to_file($certificate, $files[0]);
        openssl_pkey_export_to_file($key, $files[1]);
        chmod($files[1], 0o600);

        return $files;
    }

    /** @param array<string, int|string> $options */
    private static function newKey(
        array $options = ['private_key_type' => \OPENSSL_KEYTYPE_EC, 'curve_name' => 'prime256v1'],
    ): \OpenSSLAsymmetricKey {
        $key = openssl_pkey_new($options);

        return $key !== false ? $key : throw new \RuntimeException((string) openssl_error_string());
    }

    private function sign(
        string $name,
        \OpenSSLAsymmetricKey $key,
        ?\OpenSSLCertificate $issuer,
        string $extensions,
        int $days,
        string $digest,
    ): \OpenSSLCertificate {
        $file = "{$this->directory}/openssl.cnf";
        file_put_contents($file, "[req]\ndistinguished_name = name\n[name]\n[extensions]\n{$extensions}");
        $signer = $issuer === null ? $key : $this->key;
        $options = ['config' => $file, 'x509_extensions' => 'extensions', 'digest_alg' => $digest];
        $request = openssl_csr_new(['commonName' => $name], $key, $options);
        \assert($request instanceof \OpenSSLCertificateSigningRequest);
        $certificate = openssl_csr_sign($request, $issuer, $signer, $days, $options, $this->serial++);

        return $certificate !== false ? $certificate : throw new \RuntimeException((string) openssl_error_string());
    }
}

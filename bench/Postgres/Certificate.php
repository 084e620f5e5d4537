<?php

declare(strict_types=1);

namespace Spindle\Bench\Postgres;

/** A self-signed certificate for 127.0.0.1, in files that exist as long as this object. */
final readonly class Certificate
{
    private const OPENSSL = <<<'INI'
        [req]
        default_bits = 2048
        distinguished_name = name
        [name]
        [extensions]
        basicConstraints = critical, CA:TRUE
        extendedKeyUsage = serverAuth
        subjectAltName = IP:127.0.0.1

        INI;

    public string $file;

    public string $keyFile;

    private function __construct(private string $directory)
    {
        $this->file = "{$directory}/server.crt";
        $this->keyFile = "{$directory}/server.key";
    }

    public function __destruct()
    {
        array_map(unlink(...), array_filter((array) glob("{$this->directory}/*"), is_string(...)));
        rmdir($this->directory);
    }

    /** @throws \RuntimeException when OpenSSL fails */
    public static function make(): self
    {
        $directory = sys_get_temp_dir() . '/spindle-certificate-' . bin2hex(random_bytes(6));
        mkdir($directory, 0o700);
        $made = new self($directory);
        file_put_contents("{$directory}/openssl.cnf", self::OPENSSL);
        $options = [
            'config' => "{$directory}/openssl.cnf",
            'x509_extensions' => 'extensions',
            'digest_alg' => 'sha256',
        ];
        $key = openssl_pkey_new(['private_key_type' => \OPENSSL_KEYTYPE_EC, 'curve_name' => 'prime256v1'] + $options);
        if ($key === false) {
            throw self::failed();
        }
        openssl_pkey_export_to_file($key, $made->keyFile, null, $options);
        chmod($made->keyFile, 0o600);
        openssl_x509_export_to_file(self::sign($key, $options), $made->file);

        return $made;
    }

    /** @param array<string, string> $options */
    private static function sign(\OpenSSLAsymmetricKey $key, array $options): \OpenSSLCertificate
    {
        // The parameter is passed by reference, but not changed.
        $same = $key;
        $request = openssl_csr_new(['commonName' => 'Spindle benchmark'], $same, $options);
        $certificate = $request instanceof \OpenSSLCertificateSigningRequest
            ? openssl_csr_sign($request, null, $key, 1, $options)
            : false;

        return $certificate !== false ? $certificate : throw self::failed();
    }

    private static function failed(): \RuntimeException
    {
        return new \RuntimeException('OpenSSL could not create a certificate: ' . openssl_error_string());
    }
}

<?php

declare(strict_types=1);

namespace Spindle;

use Spindle\Internal\WorkingDirectory;

/** The certificates of a client's TLS connections. Each file is in PEM format, and its path becomes absolute. */
final readonly class TlsOptions
{
    public ?string $caFile;

    public ?string $certificate;

    public ?string $key;

    /**
     * @param string|null $caFile      path of a file with the authorities to trust; null for the system's authorities
     * @param string|null $certificate path of a file with the client's certificate; null for none
     * @param string|null $key         path of a file with the private key; null if the file $certificate has the key
     * @param string|null $serverName  name that the server's certificate must have; null for the host in the address
     * @param bool        $verifyPeer  whether the server must prove its name with a certificate of a trusted
     *                                 authority. With false, an attacker can pose as the server
     *
     * @throws \ValueError when a file can't be read, or $key is set without $certificate
     */
    public function __construct(
        ?string $caFile = null,
        ?string $certificate = null,
        ?string $key = null,
        public ?string $serverName = null,
        public bool $verifyPeer = true,
    ) {
        $files = ['caFile' => $caFile, 'certificate' => $certificate, 'key' => $key];
        foreach ($files as $name => $file) {
            if ($file !== null && (!is_file($file) || !is_readable($file))) {
                throw new \ValueError("{$name}: can't read the file '{$file}'; give the path of a PEM file");
            }
        }
        if ($key !== null && $certificate === null) {
            throw new \ValueError('key: a private key needs a certificate; give the path of its PEM file too');
        }
        // The files are read for each connection, and the program may change its working directory.
        $this->caFile = WorkingDirectory::absolute($caFile);
        $this->certificate = WorkingDirectory::absolute($certificate);
        $this->key = WorkingDirectory::absolute($key);
    }
}

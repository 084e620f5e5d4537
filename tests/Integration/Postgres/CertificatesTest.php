<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Postgres;

use PHPUnit\Framework\TestCase;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Postgres\Certificates;

final class CertificatesTest extends TestCase
{
    use OwnDirectory;

    public function testTheAuthorityVouchesForWhatItIssues(): void
    {
        $authority = new Certificates($this->path());
        $stranger = new Certificates($this->path(), 'A stranger');
        [$server] = $authority->forServer('*.example.test', 'sha384');
        [$client] = $authority->forClient('boss');

        self::assertTrue($this->serves($server, \X509_PURPOSE_SSL_SERVER, $authority));
        self::assertTrue($this->serves($client, \X509_PURPOSE_SSL_CLIENT, $authority));
        self::assertFalse($this->serves($client, \X509_PURPOSE_SSL_SERVER, $authority));
        self::assertFalse($this->serves($server, \X509_PURPOSE_SSL_SERVER, $stranger));
        self::assertSame(['DNS:*.example.test', 'ecdsa-with-SHA384'], $this->nameAndDigest($server));
        self::assertSame(
            ['IP Address:127.0.0.1', 'ecdsa-with-SHA256'],
            $this->nameAndDigest($authority->forServer('127.0.0.1')[0]),
        );
    }

    public function testOneThatHasExpiredIsNotTaken(): void
    {
        $authority = new Certificates($this->path());
        [$expired] = $authority->expiredForServer('127.0.0.1');

        self::assertFalse($this->serves($expired, \X509_PURPOSE_SSL_SERVER, $authority));
    }

    private function serves(string $certificate, int $purpose, Certificates $authority): bool
    {
        return openssl_x509_checkpurpose("file://{$certificate}", $purpose, [$authority->authority]) === true;
    }

    /** @return array{mixed, mixed} */
    private function nameAndDigest(string $certificate): array
    {
        $parsed = openssl_x509_parse("file://{$certificate}");
        self::assertIsArray($parsed);
        self::assertIsArray($parsed['extensions']);

        return [$parsed['extensions']['subjectAltName'] ?? null, $parsed['signatureTypeSN']];
    }
}

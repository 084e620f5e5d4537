<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Postgres\Connect;

use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\TestCase;
use Spindle\Internal\Network\NetworkException;
use Spindle\Postgres\Internal\Connect\Tls;
use Spindle\Postgres\PostgresHost;
use Spindle\Postgres\PostgresOptions;
use Spindle\Postgres\TlsMode;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Postgres\Certificates;

#[RequiresPhpExtension('openssl')]
final class TlsTest extends TestCase
{
    use OwnDirectory;

    public function testAChannelIsBoundToTheHashOfTheCertificateByItsOwnSignature(): void
    {
        $certificates = new Certificates($this->path());
        foreach ([
            'sha1' => 'sha256',
            'sha224' => 'sha224',
            'sha256' => 'sha256',
            'sha384' => 'sha384',
            'sha512' => 'sha512',
        ] as $digest => $expected) {
            [$file] = $certificates->forServer('db', $digest);
            $certificate = openssl_x509_read((string) file_get_contents($file));
            self::assertInstanceOf(\OpenSSLCertificate::class, $certificate);
            self::assertSame(
                bin2hex((string) openssl_x509_fingerprint($certificate, $expected, true)),
                bin2hex((string) Tls::channelBindingHash($certificate)),
                $digest,
            );
        }
        self::assertNull(Tls::channelBindingHash(null));
    }

    public function testTheServersNameIsSentAndCheckedDependingOnTheMode(): void
    {
        self::assertSame([true, true, false, 'db', true], self::options(TlsMode::VerifyFull, 'db'));
        self::assertSame([true, false, false, '10.0.0.1', false], self::options(TlsMode::VerifyCa, '10.0.0.1'));
        self::assertSame([false, false, true, 'db', true], self::options(TlsMode::Require, 'db'));
    }

    public function testACertificateIsNotCheckedForAFolder(): void
    {
        $host = new PostgresHost('/tmp', address: '10.0.0.1');
        $options = new PostgresOptions(user: 'u');

        self::assertNotNull(Tls::settings(TlsMode::VerifyCa, $host, $options));
        $this->expectException(NetworkException::class);
        $this->expectExceptionMessage("the folder '/tmp', which is no host name");
        Tls::settings(TlsMode::VerifyFull, $host, $options);
    }

    /** @return list<mixed> */
    private static function options(TlsMode $mode, string $host): array
    {
        $options = Tls::settings($mode, new PostgresHost($host), new PostgresOptions(user: 'u'))?->contextOptions();

        return array_map(
            static fn(string $name): mixed => $options[$name] ?? null,
            ['verify_peer', 'verify_peer_name', 'allow_self_signed', 'peer_name', 'SNI_enabled'],
        );
    }
}

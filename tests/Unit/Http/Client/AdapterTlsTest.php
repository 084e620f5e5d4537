<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Client;

use PHPUnit\Framework\TestCase;
use Spindle\Http\Internal\Client\AdapterTls;
use Spindle\TlsOptions;

final class AdapterTlsTest extends TestCase
{
    public function testOptionsThatAreNotGivenAreThoseOfTheClient(): void
    {
        $client = new TlsOptions(__FILE__, __FILE__, __FILE__, 'internal.test', false);

        self::assertEquals(
            new TlsOptions(__FILE__, __FILE__, __FILE__, 'internal.test'),
            AdapterTls::merge($client, null, null, null, true),
        );
    }

    public function testACertificateIsNotUsedWithTheKeyOfAnotherOne(): void
    {
        $client = new TlsOptions(certificate: __FILE__, key: __FILE__);
        $other = \dirname(__DIR__, 3) . '/Eventually.php';

        self::assertEquals(
            new TlsOptions($other, $other, verifyPeer: false),
            AdapterTls::merge($client, $other, $other, null, false),
        );
        self::assertEquals(
            new TlsOptions(certificate: __FILE__, key: $other),
            AdapterTls::merge($client, null, null, $other, true),
        );
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Http\Client;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\TestWith;
use Spindle\Http\Client\HttpClient;
use Spindle\Http\Client\HttpClientOptions;
use Spindle\Http\Client\RequestOptions;
use Spindle\Http\Client\SymfonyClient;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\Http\ScriptedServer;
use Symfony\Contracts\HttpClient\Exception\TransportExceptionInterface;
use Symfony\Contracts\HttpClient\HttpClientInterface;
use Symfony\Contracts\HttpClient\Test\HttpClientTestCase;

/** The tests that Symfony has for each implementation of its interface. */
final class SymfonyClientTest extends HttpClientTestCase
{
    use EndsInTime;

    /** Tests of features that the client does not have, with the reason. */
    private const LEFT_OUT = [
        'testHttpVersion' => 'requests are HTTP/1.1',
        'testResolve' => 'the option resolve is refused',
        'testIdnResolve' => 'the option resolve is refused',
        'testIPv6Resolve' => 'the option resolve is refused',
        'testBindToPort' => 'the option bindto is refused',
        'testBindToPortV6' => 'the option bindto is refused',
        'testInformationalResponseStream' => 'interim responses are skipped',
        'testMaxConnectDuration' => 'it needs an address that does not answer, which not every network has',
    ];

    /** Tests of responses that are dropped before their status was read. */
    private const WITH_DESTRUCTORS = [
        'testTimeoutOnDestruct', 'testDestruct', 'testGetContentAfterDestruct', 'testGetEncodedContentAfterDestruct',
    ];

    protected function setUp(): void
    {
        if (isset(self::LEFT_OUT[$this->name()])) {
            self::markTestSkipped(self::LEFT_OUT[$this->name()]);
        }
        if (\PHP_VERSION_ID < 80_400 && \in_array($this->name(), self::WITH_DESTRUCTORS, true)) {
            self::markTestSkipped('PHP < 8.4 can not suspend in destructors');
        }
    }

    protected function getHttpClient(string $testCase): HttpClientInterface
    {
        return new SymfonyClient();
    }

    /** @param array<string, mixed> $options */
    #[DataProvider('unsupportedOptions')]
    public function testOptionsThatAreNotSupportedAreRefused(array $options): void
    {
        $this->expectException(TransportExceptionInterface::class);
        $this->expectExceptionMessage('The option "' . array_key_first($options) . '" is not supported here');
        (new SymfonyClient())->request('GET', 'http://127.0.0.1:1/', $options);
    }

    #[TestWith(['proxy', 'socks5://127.0.0.1:1', 'the proxy for http (http_proxy) must be an http:// URL'])]
    #[TestWith(['cafile', '/missing.pem', "can't read the file '/missing.pem'"])]
    public function testAnInvalidOptionFailsAsSymfonyDocumentsIt(string $name, string $value, string $why): void
    {
        $response = (new SymfonyClient())->request('GET', 'http://127.0.0.1:1/', [$name => $value]);
        $this->expectException(TransportExceptionInterface::class);
        $this->expectExceptionMessage($why);
        $response->getStatusCode();
    }

    public function testOptionsOfTheClientApplyWhereSymfonyHasNone(): void
    {
        $client = new HttpClient(new HttpClientOptions(request: new RequestOptions(blocksPrivateAddresses: true)));
        $response = (new SymfonyClient($client))->request('GET', 'http://127.0.0.1:1/');
        $this->expectException(TransportExceptionInterface::class);
        $this->expectExceptionMessage('its address is not public');
        $response->getStatusCode();
    }

    public function testAHeaderWhoseNameIsANumberIsReceived(): void
    {
        $server = new ScriptedServer(ScriptedServer::answering("HTTP/1.1 204 No Content\r\n7: x\r\n\r\n"));
        $headers = (new SymfonyClient())->request('GET', $server->url())->getHeaders();
        $server->close();

        self::assertSame('{"7":["x"]}', json_encode($headers));
    }

    /** @return iterable<string, array{array<string, mixed>}> */
    public static function unsupportedOptions(): iterable
    {
        yield 'resolve' => [['resolve' => ['example.test' => '127.0.0.1']]];
        yield 'bindto' => [['bindto' => '127.0.0.1:9876']];
        yield 'verify_host' => [['verify_host' => false]];
        yield 'passphrase' => [['passphrase' => 'secret']];
        yield 'ciphers' => [['ciphers' => 'AES']];
        yield 'capath' => [['capath' => '/etc/ssl']];
        yield 'crypto_method' => [['crypto_method' => \STREAM_CRYPTO_METHOD_TLSv1_3_CLIENT]];
        yield 'peer_fingerprint' => [['peer_fingerprint' => ['pin-sha256' => [base64_encode(str_repeat('x', 32))]]]];
    }
}

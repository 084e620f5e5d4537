<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Middleware;

use Nyholm\Psr7\ServerRequest;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Psr\Http\Message\ServerRequestInterface;
use Spindle\Http\Middleware\ProxyHeaders;
use Spindle\Http\Middleware\TrustedProxies;

final class TrustedProxiesTest extends TestCase
{
    private const PROXIES = ['10.0.0.0/8', '192.0.2.7', 'fd00::/8', 'unix'];
    private const PEER = '10.0.0.1';
    private const CLIENT = '203.0.113.9';

    /** @return iterable<string, array{string, string}> */
    public static function forwarded(): iterable
    {
        yield 'an address' => ['for=203.0.113.9', self::CLIENT];
        yield 'in quotes' => ['for="203.0.113.9"', self::CLIENT];
        yield 'with a port' => ['for="203.0.113.9:4711"', self::CLIENT];
        yield 'with a hidden port' => ['for="203.0.113.9:_p"', self::CLIENT];
        yield 'IPv6' => ['For="[2001:db8:0:0::17]"', '2001:db8::17'];
        yield 'IPv6 with a port' => ['FOR="[2001:db8:cafe::17]:4711"', '2001:db8:cafe::17'];
        yield 'IPv4 within IPv6' => ['for="[::ffff:203.0.113.9]"', self::CLIENT];
        yield 'more parameters' => [
            'proto=https;by=203.0.113.43;for=203.0.113.9;host=a.example;x="y;for=1.1.1.1"',
            self::CLIENT,
        ];
        yield 'blanks around the semicolon' => ['for=203.0.113.9; proto=https ; by=10.0.0.1', self::CLIENT];
        yield 'a semicolon at the end' => ['for=203.0.113.9;', self::CLIENT];
        yield 'an escape' => ['for="203.0.113\.9"', self::CLIENT];
        yield 'proxies that are trusted' => ['for=1.1.1.1, for=203.0.113.9,for=10.2.3.4 , for=192.0.2.7', self::CLIENT];
        yield 'none but proxies that are trusted' => ['for=10.0.0.9, for=10.0.0.8', '10.0.0.9'];
        yield 'a proxy that is not trusted' => ['for=203.0.113.9, for=192.0.2.8, for=10.2.3.4', '192.0.2.8'];
        yield 'empty members' => [', ,for=203.0.113.9, ,', self::CLIENT];
        yield 'a comma in quotes' => ['for=203.0.113.9;host="a, for=6.6.6.6"', self::CLIENT];
        yield 'a comma and a quote in quotes' => ['for=203.0.113.9;host="a\", for=6.6.6.6"', self::CLIENT];
        yield 'a long element with a comma in quotes' => [
            'for=203.0.113.9;x="' . str_repeat('x', 900) . ',' . str_repeat('x', 900) . '"',
            self::CLIENT,
        ];
        yield 'an element that is too long to look for its beginning' => [
            'for=203.0.113.9;x="' . str_repeat(str_repeat('x', 600) . ',', 4) . '"',
            self::PEER,
        ];
        yield 'an element in quotes' => ['for=203.0.113.9;host=",for=\"6.6.6.6"', self::CLIENT];
        yield 'a backslash at the end of quotes' => ['for=203.0.113.9;host="a,for=\\\\"', self::CLIENT];

        yield 'a client that says something itself' => ['for=6.6.6.6, for=203.0.113.9', self::CLIENT];
        yield 'a client that says what is trusted' => ['for=10.0.0.3, for=203.0.113.9', self::CLIENT];
        yield 'a client that opens a quote' => ['for=", for=203.0.113.9', self::CLIENT];
        yield 'a client that opens a quote at the end of a comment' => [
            'for=6.6.6.6;x="\", for=203.0.113.9',
            self::CLIENT,
        ];
        yield 'a client that sends garbage' => ["\x80=;;;, for=203.0.113.9", self::CLIENT];
        yield 'a client that hides' => ['for=unknown, for=203.0.113.9', self::CLIENT];

        yield 'unknown' => ['for=unknown', self::PEER];
        yield 'Unknown, with a port' => ['for="Unknown:80"', self::PEER];
        yield 'hidden' => ['for=_hidden', self::PEER];
        yield 'hidden, before a proxy that is trusted' => ['for=203.0.113.9, for=_SEVKISEK, for=10.2.3.4', '10.2.3.4'];
        yield 'none' => ['', self::PEER];
        yield 'no address' => ['proto=https', self::PEER];
        yield 'a name' => ['for=client.example', self::PEER];
        yield 'an octet too large' => ['for=203.0.113.900', self::PEER];
        yield 'leading zeros' => ['for=010.0.113.9', self::PEER];
        yield 'three octets' => ['for=203.0.113', self::PEER];
        yield 'brackets without quotes' => ['for=[2001:db8::17]', self::PEER];
        yield 'a port without quotes' => ['for=203.0.113.9:80', self::PEER];
        yield 'open brackets' => ['for="[2001:db8::17"', self::PEER];
        yield 'a zone' => ['for="[fe80::1%eth0]"', self::PEER];
        yield 'twice in one element' => ['for=203.0.113.9;for=6.6.6.6', self::PEER];
        yield 'no value' => ['for=', self::PEER];
        yield 'no name' => ['=203.0.113.9', self::PEER];
        yield 'blanks around the equals sign' => ['for = 203.0.113.9', self::PEER];
        yield 'an open quote' => ['for="203.0.113.9', self::PEER];
        yield 'no separator' => ['for=203.0.113.9 proto=https', self::PEER];
        yield 'something malformed, before a proxy that is trusted' => [
            'for=203.0.113.9, for=, for=10.2.3.4',
            '10.2.3.4',
        ];
        yield 'an element of many pairs' => [
            'for=203.0.113.9;' . implode(';', array_map(static fn(int $i): string => "{$i}=a", range(1, 300))),
            self::PEER,
        ];
        yield 'nothing but quotes' => [str_repeat('",', 15_000), self::PEER];
        yield 'nothing but commas' => [str_repeat(',', 30_000), self::PEER];
        yield 'nothing but escapes' => ['for="' . str_repeat('\"', 15_000), self::PEER];
    }

    #[DataProvider('forwarded')]
    public function testForwardedNamesTheClient(string $field, string $client): void
    {
        $request = self::passed(['Forwarded' => $field]);

        self::assertSame($client, $request->getAttribute('client-ip'));
    }

    public function testTheLinesOfAFieldAreOneList(): void
    {
        self::assertSame(
            self::CLIENT,
            self::passed(
                ['Forwarded' => ['for=6.6.6.6;x="', 'for=203.0.113.9', 'for=10.2.3.4']],
            )->getAttribute('client-ip'),
        );
        self::assertSame(
            self::CLIENT,
            self::passed(
                ['X-Forwarded-For' => ['6.6.6.6', '203.0.113.9', '10.2.3.4']],
                ProxyHeaders::XForwarded,
            )->getAttribute('client-ip'),
        );
    }

    /** @return iterable<string, array{string, string}> */
    public static function xForwardedFor(): iterable
    {
        yield 'an address' => ['203.0.113.9', self::CLIENT];
        yield 'with a port' => ['203.0.113.9:4711', self::CLIENT];
        yield 'IPv6' => ['2001:DB8::17', '2001:db8::17'];
        yield 'IPv6 written out, in digits' => ['2001:1:2:3:4:5:6:7', '2001:1:2:3:4:5:6:7'];
        yield 'IPv6 in brackets' => ['[2001:db8::17]', '2001:db8::17'];
        yield 'IPv6 with a port' => ['[2001:db8::17]:443', '2001:db8::17'];
        yield 'proxies that are trusted' => ["6.6.6.6, 203.0.113.9,\t10.2.3.4 , fd00::1", self::CLIENT];
        yield 'none but proxies that are trusted' => ['10.0.0.9,10.0.0.8', '10.0.0.9'];
        yield 'a client that says something itself' => ['garbage " \\, 203.0.113.9', self::CLIENT];
        yield 'unknown' => ['unknown', self::PEER];
        yield 'none' => ['', self::PEER];
        yield 'a name' => ['localhost', self::PEER];
        yield 'markup' => ['<script>', self::PEER];
        yield 'an empty member' => ['203.0.113.9,', self::PEER];
        yield 'in quotes' => ['"203.0.113.9"', self::PEER];
        yield 'a number' => ['3405803785', self::PEER];
        yield 'hexadecimal' => ['0xcb.0.113.9', self::PEER];
        yield 'a great deal' => [str_repeat('10.0.0.1,', 3500) . 'x', self::PEER];
    }

    #[DataProvider('xForwardedFor')]
    public function testXForwardedForNamesTheClient(string $field, string $client): void
    {
        self::assertSame(
            $client,
            self::passed(['X-Forwarded-For' => $field], ProxyHeaders::XForwarded)->getAttribute('client-ip'),
        );
    }

    /** @return iterable<string, array{string, bool}> */
    public static function peers(): iterable
    {
        yield 'in a network' => ['10.255.255.255', true];
        yield 'beside a network' => ['11.0.0.0', false];
        yield 'an address' => ['192.0.2.7', true];
        yield 'beside an address' => ['192.0.2.6', false];
        yield 'in an IPv6 network' => ['fdff::1', true];
        yield 'beside an IPv6 network' => ['fe00::1', false];
        yield 'IPv4 within IPv6' => ['::ffff:10.0.0.1', true];
        yield 'IPv4 within IPv6, beside a network' => ['::ffff:11.0.0.1', false];
        yield 'a Unix socket' => ['unix:', true];
        yield 'nobody' => ['', false];
        yield 'a word' => ['unix', false];
    }

    #[DataProvider('peers')]
    public function testOnlyATrustedPeerIsBelieved(string $peer, bool $trusted): void
    {
        $request = self::passed(['Forwarded' => 'for=203.0.113.9;proto=https;host=a.example'], peer: $peer);

        self::assertSame(
            $trusted ? self::CLIENT : str_replace('::ffff:', '', $peer),
            $request->getAttribute('client-ip'),
        );
        self::assertSame($trusted ? 'https://a.example/p?q' : 'http://inner:8080/p?q', (string) $request->getUri());
        self::assertSame($trusted, $request->hasHeader('Forwarded'));
    }

    /** @return iterable<string, array{string, string, bool}> */
    public static function networks(): iterable
    {
        yield 'all of IPv4' => ['0.0.0.0/0', '203.0.113.9', true];
        yield 'all of IPv4 is not IPv6' => ['0.0.0.0/0', '2001:db8::1', false];
        yield 'all of IPv6' => ['::/0', '2001:db8::1', true];
        yield 'all of IPv6 is not IPv4' => ['::/0', '203.0.113.9', false];
        yield 'the first half' => ['203.0.113.0/25', '203.0.113.127', true];
        yield 'the second half' => ['203.0.113.0/25', '203.0.113.128', false];
        yield 'the last one' => ['203.0.113.9/32', '203.0.113.9', true];
        yield 'written from an address in it' => ['203.0.113.77/24', '203.0.113.9', true];
        yield 'bits in the middle of a byte' => ['2001:db8:8000::/33', '2001:db8:ffff::1', true];
        yield 'bits in the middle of a byte, beside it' => ['2001:db8:8000::/33', '2001:db8:7fff::1', false];
        yield 'IPv4 within IPv6' => ['::ffff:203.0.113.0/120', '203.0.113.9', true];
        yield 'the first half of IPv4 within IPv6' => ['::ffff:203.0.113.0/121', '203.0.113.127', true];
        yield 'the second half of IPv4 within IPv6' => ['::ffff:203.0.113.0/121', '203.0.113.128', false];
        yield 'IPv4 within IPv6, beside it' => ['::ffff:203.0.113.0/120', '203.0.114.9', false];
    }

    #[DataProvider('networks')]
    public function testANetworkContainsItsAddressesOnly(string $network, string $peer, bool $trusted): void
    {
        $handler = new Handler();
        (new TrustedProxies([$network], ProxyHeaders::Forwarded))->process(
            self::request(['Forwarded' => 'for=1.2.3.4'], $peer),
            $handler,
        );

        self::assertSame($trusted ? '1.2.3.4' : $peer, $handler->got()->getAttribute('client-ip'));
    }

    /** @return iterable<string, array{string}> */
    public static function noNetworks(): iterable
    {
        yield 'nothing' => [''];
        yield 'a name' => ['localhost'];
        yield 'too many bits' => ['10.0.0.0/33'];
        yield 'too many bits of IPv6' => ['::/129'];
        yield 'bits below the IPv4 within IPv6' => ['::ffff:10.0.0.0/95'];
        yield 'no bits' => ['10.0.0.0/'];
        yield 'bits below 0' => ['10.0.0.0/-1'];
        yield 'a mask' => ['10.0.0.0/255.0.0.0'];
        yield 'three octets' => ['10.0.0/8'];
        yield 'a port' => ['10.0.0.1:80'];
        yield 'a line break' => ["10.0.0.1\n"];
    }

    #[DataProvider('noNetworks')]
    public function testAnInvalidProxyIsRefused(string $network): void
    {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage((string) json_encode($network));
        new TrustedProxies(['10.0.0.1', $network], ProxyHeaders::Forwarded);
    }

    /** @return iterable<string, array{array<string, string>, string}> */
    public static function locations(): iterable
    {
        yield 'nothing' => [['Forwarded' => 'for=1.2.3.4'], 'http://inner:8080/p?q'];
        yield 'the scheme' => [['Forwarded' => 'for=1.2.3.4;proto=HTTPS'], 'https://inner:8080/p?q'];
        yield 'the host' => [['Forwarded' => 'for=1.2.3.4;host=A.example'], 'http://a.example/p?q'];
        yield 'host and port' => [
            ['Forwarded' => 'for=1.2.3.4;host="a.example:8443";proto=https'],
            'https://a.example:8443/p?q',
        ];
        yield "the scheme's own port" => [['Forwarded' => 'host="a.example:443";proto=https'], 'https://a.example/p?q'];
        yield 'IPv6' => [['Forwarded' => 'for=1.2.3.4;host="[2001:db8::1]:81"'], 'http://[2001:db8::1]:81/p?q'];
        yield 'of the proxy that the client came to' => [
            [
                'Forwarded' => 'for=6.6.6.6;host=evil.example;proto=http,'
                    . ' for=203.0.113.9;host=a.example;proto=https, for=10.2.3.4;host=b.example;proto=http',
            ],
            'https://a.example/p?q',
        ];
        yield 'the last valid entry' => [
            ['Forwarded' => 'host=evil.example, x, for=10.2.3.4;host=b.example'],
            'http://b.example/p?q',
        ];
        yield 'another scheme' => [
            ['Forwarded' => 'for=1.2.3.4;proto=javascript;host=a.example'],
            'http://a.example/p?q',
        ];
        yield 'a host with a path' => [['Forwarded' => 'for=1.2.3.4;host="a.example/x"'], 'http://inner:8080/p?q'];
        yield 'a host with a user' => [['Forwarded' => 'for=1.2.3.4;host="u@a.example"'], 'http://inner:8080/p?q'];
        yield 'a host with a blank' => [['Forwarded' => 'for=1.2.3.4;host="a b"'], 'http://inner:8080/p?q'];
        yield 'a host that is none' => [['Forwarded' => 'for=1.2.3.4;host=""'], 'http://inner:8080/p?q'];
        yield 'brackets around no address' => [
            ['Forwarded' => 'for=1.2.3.4;host="[1.2.3.4]"'],
            'http://inner:8080/p?q',
        ];
        yield 'port 0' => [['Forwarded' => 'for=1.2.3.4;host="a.example:0"'], 'http://inner:8080/p?q'];
        yield 'a port beyond all' => [['Forwarded' => 'for=1.2.3.4;host="a.example:65536"'], 'http://inner:8080/p?q'];

        yield 'a port of many digits' => [
            ['Forwarded' => 'for=1.2.3.4;host="a.example:000081"'],
            'http://inner:8080/p?q',
        ];
        yield 'a port of one digit' => [['Forwarded' => 'for=1.2.3.4;host="a.example:9"'], 'http://a.example:9/p?q'];
        yield 'of a proxy that hides the client' => [
            ['Forwarded' => 'for="_ab:_xyz";host=a.example'],
            'http://a.example/p?q',
        ];
        yield 'next to a client that is neither hidden nor known' => [
            ['Forwarded' => 'for=_a!b;host=evil.example'],
            'http://inner:8080/p?q',
        ];
        yield 'beside a client that is nearly unknown' => [
            ['Forwarded' => 'for=x_unknown;host=evil.example'],
            'http://inner:8080/p?q',
        ];
        yield 'X: a port of many digits' => [['X-Forwarded-Port' => '000081'], 'http://inner:8080/p?q'];
        yield 'X: nothing' => [['X-Forwarded-For' => '1.2.3.4'], 'http://inner:8080/p?q'];
        yield 'X: all' => [
            [
                'X-Forwarded-For' => '1.2.3.4',
                'X-Forwarded-Proto' => 'https',
                'X-Forwarded-Host' => 'a.example',
                'X-Forwarded-Port' => '8443',
            ],
            'https://a.example:8443/p?q',
        ];
        yield 'X: all, with the usual port' => [
            [
                'X-Forwarded-For' => '1.2.3.4',
                'X-Forwarded-Proto' => 'https',
                'X-Forwarded-Host' => 'a.example',
                'X-Forwarded-Port' => '443',
            ],
            'https://a.example/p?q',
        ];
        yield 'X: the scheme alone' => [['X-Forwarded-Proto' => 'https'], 'https://inner:8080/p?q'];
        yield 'X: the port alone' => [
            ['X-Forwarded-For' => '1.2.3.4', 'X-Forwarded-Port' => '81'],
            'http://inner:81/p?q',
        ];
        yield 'X: two ports' => [
            ['X-Forwarded-Host' => 'a.example:82', 'X-Forwarded-Port' => '81'],
            'http://a.example:82/p?q',
        ];
        yield 'X: a host without its port' => [['X-Forwarded-Host' => 'a.example'], 'http://a.example/p?q'];
        yield 'X: a port that is none' => [
            ['X-Forwarded-Proto' => 'https', 'X-Forwarded-Port' => '8e1'],
            'https://inner:8080/p?q',
        ];
        yield 'X: one for all' => [
            ['X-Forwarded-For' => '203.0.113.9, 10.2.3.4', 'X-Forwarded-Proto' => 'https'],
            'https://inner:8080/p?q',
        ];
        yield 'X: one for each' => [
            ['X-Forwarded-For' => '6.6.6.6, 203.0.113.9, 10.2.3.4', 'X-Forwarded-Proto' => 'http, https, http'],
            'https://inner:8080/p?q',
        ];
        yield 'X: fewer than proxies' => [
            ['X-Forwarded-For' => '203.0.113.9, 10.2.3.4, 10.2.3.5', 'X-Forwarded-Proto' => 'http, https'],
            'http://inner:8080/p?q',
        ];
        yield 'X: beside a malformed address' => [
            ['X-Forwarded-For' => 'x', 'X-Forwarded-Proto' => 'https', 'X-Forwarded-Host' => 'evil.example'],
            'http://inner:8080/p?q',
        ];
    }

    /** @param array<string, string> $headers */
    #[DataProvider('locations')]
    public function testTheUriIsTheOneThatTheClientUsed(array $headers, string $uri): void
    {
        $request = self::passed(
            $headers,
            isset($headers['Forwarded']) ? ProxyHeaders::Forwarded : ProxyHeaders::XForwarded,
        );

        self::assertSame($uri, (string) $request->getUri());
        self::assertSame($request->getUri()->getAuthority(), $request->getHeaderLine('Host'));
        self::assertSame('/p?q', $request->getRequestTarget());
    }

    public function testOneKindOfHeadersIsTrustedAndTheOtherRemoved(): void
    {
        $headers = [
            'Forwarded' => 'for=1.1.1.1',
            'X-Forwarded-For' => '2.2.2.2',
            'x-forwarded-host' => 'evil.example',
            'X-Forwarded-Proto' => 'https',
            'X-Forwarded-Port' => '1',
            'x-forwarded-prefix' => '/evil',
            'X-Forwarded-Server' => 'evil.example',
            'X-Other' => 'x',
        ];
        $names = static fn(ServerRequestInterface $request): array => array_keys($request->getHeaders());

        $request = self::passed($headers);
        self::assertSame('1.1.1.1', $request->getAttribute('client-ip'));
        self::assertSame(['Host', 'Forwarded', 'X-Other'], $names($request));

        $request = self::passed($headers, ProxyHeaders::XForwarded);
        self::assertSame('2.2.2.2', $request->getAttribute('client-ip'));
        self::assertSame('https://evil.example:1/p?q', (string) $request->getUri());
        self::assertNotContains('Forwarded', $names($request));
        self::assertContains('X-Forwarded-For', $names($request));
        self::assertContains('x-forwarded-prefix', $names($request));

        $request = self::passed($headers, peer: '203.0.113.1');
        self::assertSame('203.0.113.1', $request->getAttribute('client-ip'));
        self::assertSame(['Host', 'X-Other'], $names($request));
    }

    public function testNoFieldThatLooksLikeThatOfAProxyReachesTheHandler(): void
    {
        $headers = [
            'X_Forwarded_For' => '6.6.6.6',
            'x-forwarded_proto' => 'https',
            'X_FORWARDED-Prefix' => '/evil',
            'X_Other' => 'x',
        ];
        foreach (ProxyHeaders::cases() as $told) {
            $request = self::passed($headers, $told);

            self::assertSame(self::PEER, $request->getAttribute('client-ip'));
            self::assertSame(['Host', 'X_Other'], array_keys($request->getHeaders()));
        }
    }

    public function testARequestWhosePeerIsNotKnownIsNotTrusted(): void
    {
        $handler = new Handler();
        (new TrustedProxies(['0.0.0.0/0', '::/0', 'unix'], ProxyHeaders::Forwarded))->process(
            new ServerRequest('GET', '/', ['Forwarded' => 'for=1.1.1.1']),
            $handler,
        );

        self::assertSame('', $handler->got()->getAttribute('client-ip'));
    }

    /** @param array<string, string|list<string>> $headers */
    private static function passed(
        array $headers,
        ProxyHeaders $told = ProxyHeaders::Forwarded,
        string $peer = self::PEER,
    ): ServerRequestInterface {
        $handler = new Handler();
        (new TrustedProxies(self::PROXIES, $told))->process(self::request($headers, $peer), $handler);

        return $handler->got();
    }

    /** @param array<string, string|list<string>> $headers */
    private static function request(array $headers, string $peer): ServerRequest
    {
        return new ServerRequest('GET', 'http://inner:8080/p?q', $headers, serverParams: ['REMOTE_ADDR' => $peer]);
    }
}

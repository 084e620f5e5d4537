<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Message;

use Amp\Cancellation;
use Nyholm\Psr7\Stream;
use Nyholm\Psr7\Uri;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Psr\Http\Message\ServerRequestInterface;
use Spindle\Http\HttpException;
use Spindle\Http\Internal\Message\MessageLimits;
use Spindle\Http\Internal\Message\Peer;
use Spindle\Http\Internal\Message\Request;
use Spindle\Http\Internal\Message\RequestParser;
use Spindle\Http\MatchedRoute;
use Spindle\Http\Middleware\ProxyHeaders;
use Spindle\Http\Middleware\TrustedProxies;
use Spindle\Http\MiddlewareStack;
use Spindle\Http\Response;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\Host;

final class RequestTest extends TestCase
{
    use CatchesThrown;

    /** @return iterable<string, array{string, string, string}> target, Host, URI */
    public static function uris(): iterable
    {
        yield 'origin' => ['/a/b?c=d', 'example.org', 'http://example.org/a/b?c=d'];
        yield 'with a port' => ['/', 'example.org:8080', 'http://example.org:8080/'];
        yield 'with the usual port' => ['/', 'example.org:80', 'http://example.org/'];
        yield 'an address' => ['/', '[::1]:8080', 'http://[::1]:8080/'];
        yield 'absolute' => ['http://other.org/x?y', 'example.org', 'http://other.org/x?y'];
        yield 'asterisk' => ['*', 'example.org', 'http://example.org'];
        yield 'two slashes' => ['//evil.org/x', 'example.org', 'http://example.org//evil.org/x'];
        yield 'a colon' => ['/:80', 'example.org', 'http://example.org/:80'];
        yield 'no host' => ['//a', '', 'http://192.0.2.2:8080//a'];
        yield 'asterisk without a host' => ['*', '', 'http://192.0.2.2:8080'];
        yield 'what a URI has no place for' => ['/a"b|c', 'example.org', 'http://example.org/a%22b%7Cc'];
    }

    #[DataProvider('uris')]
    public function testTheUriFollowsFromTargetAndHost(string $target, string $host, string $uri): void
    {
        self::assertSame(
            $uri,
            (string) self::request(
                ($target === '*' ? 'OPTIONS' : 'GET') . " {$target} HTTP/1.1\r\nHost: {$host}\r\n\r\n",
                Peer::of('192.0.2.1:1', '192.0.2.2:8080', false),
            )->getUri(),
        );
    }

    /** @return iterable<string, array{Peer, string}> */
    public static function addresses(): iterable
    {
        yield 'IPv4' => [Peer::of('192.0.2.1:1', '192.0.2.2:80', false), 'http://192.0.2.2/a?b'];
        yield 'IPv6' => [Peer::of('[2001:db8::1]:1', '[2001:db8::2]:8080', false), 'http://[2001:db8::2]:8080/a?b'];
        yield 'TLS' => [Peer::of('192.0.2.1:1', '192.0.2.2:8443', true), 'https://192.0.2.2:8443/a?b'];
        yield 'a Unix socket with a colon' => [Peer::of('', '/run/app:80', false), 'http://localhost/a?b'];
        yield 'a Unix socket' => [Peer::of('', '/run/app.sock', false), 'http://localhost/a?b'];
    }

    /** RFC 9112, 3.3. */
    #[DataProvider('addresses')]
    public function testWithoutAHostFieldTheUriHasTheServersAddress(Peer $peer, string $uri): void
    {
        $request = self::request("GET /a?b HTTP/1.0\r\n\r\n", $peer);

        self::assertSame(
            [$uri, false, ['b' => '']],
            [(string) $request->getUri(), $request->hasHeader('Host'), $request->getQueryParams()],
        );
    }

    /** RFC 9110, 7.4. */
    public function testAUriOfHttpsIsMisdirectedOnAConnectionWithoutTls(): void
    {
        $target = 'https://a/b';
        $secure = self::request(
            "GET {$target} HTTP/1.1\r\nHost: a\r\n\r\n",
            Peer::of('192.0.2.1:1', '192.0.2.2:443', true),
        );
        self::assertSame($target, (string) $secure->getUri());

        $plain = self::request("GET {$target} HTTP/1.1\r\nHost: a\r\n\r\n");
        $refusal = self::thrown(HttpException::class, static fn() => $plain->getUri());
        self::assertSame(421, $refusal->status);

        $passOn = static fn(ServerRequestInterface $request): Response => Response::text((string) $request->getUri());
        $stack = new MiddlewareStack($passOn, new TrustedProxies(['192.0.2.1'], ProxyHeaders::XForwarded));
        self::assertSame(
            $target,
            $stack->handle($plain)->getBody()->getContents(),
            'a trusted proxy may have decrypted it',
        );
    }

    public function testAnAbsoluteTargetNamesTheHost(): void
    {
        $request = self::request("GET http://other.org:81/ HTTP/1.1\r\nA: b\r\nhost: example.org\r\nC: d\r\n\r\n");

        self::assertSame('other.org:81', $request->getHeaderLine('Host'));
        self::assertSame(['b', 'd'], [$request->getHeaderLine('A'), $request->getHeaderLine('C')]);
    }

    public function testAnInvalidUriIsABadRequest(): void
    {
        $this->expectException(HttpException::class);
        $this->expectExceptionMessage('The target or the Host field is not valid in a URI');

        self::request("GET / HTTP/1.1\r\nHost: a:99999\r\n\r\n")->getUri();
    }

    public function testTlsMakesItHttps(): void
    {
        $request = self::request(
            "GET /a?b=c HTTP/1.1\r\nHost: a\r\n\r\n",
            Peer::of('[2001:db8::1]:5000', '[::1]:443', true),
        );
        $parameters = $request->getServerParams();

        self::assertSame('https://a/a?b=c', (string) $request->getUri());
        self::assertSame(['2001:db8::1', 5000, '::1', 443, 'on', 'GET', '/a?b=c', 'b=c', 'HTTP/1.1'], [
            $parameters['REMOTE_ADDR'],
            $parameters['REMOTE_PORT'],
            $parameters['SERVER_ADDR'],
            $parameters['SERVER_PORT'],
            $parameters['HTTPS'],
            $parameters['REQUEST_METHOD'],
            $parameters['REQUEST_URI'],
            $parameters['QUERY_STRING'],
            $parameters['SERVER_PROTOCOL'],
        ]);
    }

    public function testServerParametersHaveNoEnvironmentVariables(): void
    {
        putenv('A_SECRET=x');

        self::assertArrayNotHasKey(
            'A_SECRET',
            self::request("GET / HTTP/1.1\r\nHost: a\r\n\r\n", Peer::of('', '/run/x.sock', false))->getServerParams(),
        );
        self::assertSame(
            'unix:',
            self::request(
                "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
                Peer::of('', '/run/x.sock', false),
            )->getServerParams()['REMOTE_ADDR'],
        );
    }

    public function testHeadersAreFoundInAnyCase(): void
    {
        $request = self::request("GET / HTTP/1.1\r\nHost: a\r\nX-One: 1\r\nx-one:  2 \t\r\nEmpty:\r\n7: seven\r\n\r\n");

        self::assertSame(['1', '2'], $request->getHeader('X-ONE'));
        self::assertSame(
            ['Host' => ['a'], 'X-One' => ['1', '2'], 'Empty' => [''], 7 => ['seven']],
            $request->getHeaders(),
        );
        self::assertSame(
            ['', [], true, false],
            [
                $request->getHeaderLine('none'),
                $request->getHeader('none'),
                $request->hasHeader('empty'),
                $request->hasHeader('none'),
            ],
        );
    }

    /** @return iterable<string, array{string, array<array-key, string>}> */
    public static function cookies(): iterable
    {
        yield 'several' => ['Cookie: a=1; b=2', ['a' => '1', 'b' => '2']];
        yield 'in two fields' => ["Cookie: a=1\r\nCookie: b=2", ['a' => '1', 'b' => '2']];
        yield 'the first of a name' => ['Cookie: a=1; a=2', ['a' => '1']];
        yield 'encoded' => ['Cookie: a=%20+x%3D%2B; b%20c+d=1', ['a' => ' +x=+', 'b%20c+d' => '1']];
        yield 'with an equals sign' => ['Cookie: a=b=c', ['a' => 'b=c']];
        yield 'without a value' => ['Cookie: a; b=; =c; ;', ['b' => '']];
        yield 'none' => ['X: y', []];
    }

    /** @param array<array-key, string> $cookies */
    #[DataProvider('cookies')]
    public function testCookiesAreParsed(string $field, array $cookies): void
    {
        self::assertSame($cookies, self::request("GET / HTTP/1.1\r\nHost: a\r\n{$field}\r\n\r\n")->getCookieParams());
    }

    public function testMoreCookiesThanMaxInputVarsAreABadRequest(): void
    {
        $limit = (int) \ini_get('max_input_vars');
        $fields = static fn(int $count): string
            => 'Cookie: ' . implode(';', array_map(static fn(int $i): string => "{$i}=a", range(1, $count)));
        self::assertCount(
            $limit,
            self::request("GET / HTTP/1.1\r\nHost: a\r\n{$fields($limit)};1=b\r\n\r\n")->getCookieParams(),
        );

        $this->expectExceptionObject(new HttpException(400, "The request has more than {$limit} cookies"));
        self::request("GET / HTTP/1.1\r\nHost: a\r\n{$fields($limit + 1)}\r\n\r\n")->getCookieParams();
    }

    public function testMaxInputVarsMayHaveASuffixAsInPhp(): void
    {
        $limit = ['-d', 'max_input_vars=1K', '-d', 'max_input_nesting_level=1K'];

        self::assertSame([1024, 1024, 1], Host::call(self::class . '::countVariables', options: $limit));
    }

    /** @return list<int> */
    public static function countVariables(): array
    {
        $names = array_map(static fn(int $number): string => "a{$number}=b", range(1, 1024));
        $request = self::request(
            'GET /?' . implode('&', $names) . " HTTP/1.1\r\nHost: a\r\nCookie: " . implode(';', $names) . "\r\n\r\n",
        );
        $nested = self::request('GET /?a' . str_repeat('[b]', 1000) . "=c HTTP/1.1\r\nHost: a\r\n\r\n");

        return [
            \count($request->getQueryParams()),
            \count($request->getCookieParams()),
            \count($nested->getQueryParams()),
        ];
    }

    public function testAllVariablesOfAQueryAreReturned(): void
    {
        $query = implode('&', array_fill(0, 1000, 'a[]=1'));

        self::assertSame(
            ['a' => array_fill(0, 1000, '1')],
            self::request("GET /?{$query} HTTP/1.1\r\nHost: a\r\n\r\n")->getQueryParams(),
        );
        self::assertSame(
            ['a' => array_fill(0, 1000, '1')],
            self::request("GET /?&&{$query}&&& HTTP/1.1\r\nHost: a\r\n\r\n")->getQueryParams(),
            'nothing between two separators is no variable',
        );
        self::assertCount(
            1,
            self::request('GET /?a=' . str_repeat('x', 8000) . " HTTP/1.1\r\nHost: a\r\n\r\n")->getQueryParams(),
        );
        self::assertSame(
            ['a' => ['b' => str_repeat('[', 100)]],
            self::request('GET /?a[b]=' . str_repeat('[', 100) . " HTTP/1.1\r\nHost: a\r\n\r\n")->getQueryParams(),
        );
    }

    /** @return iterable<string, array{string, string}> */
    public static function queriesOfWhichPhpWouldDropSomething(): iterable
    {
        yield 'variables' => [implode('&', array_fill(0, 1001, 'a[]=1')), 'The query has more than 1000 variables'];
        yield 'short variables' => [str_repeat('a&', 1001), 'The query has more than 1000 variables'];
        yield 'brackets' => [
            'b&a' . str_repeat('[x]', 65) . '=1',
            'The name of a variable of the query has more than 64 brackets',
        ];
        yield 'encoded brackets' => [
            'a' . str_repeat('%5Bx%5d', 65),
            'The name of a variable of the query has more than 64 brackets',
        ];
    }

    #[DataProvider('queriesOfWhichPhpWouldDropSomething')]
    public function testAQueryThatPhpWouldTruncateIsRefused(string $query, string $why): void
    {
        $request = self::request("GET /?{$query} HTTP/1.1\r\nHost: a\r\n\r\n");
        foreach ([1, 2] as $time) {
            $refusal = self::thrown(HttpException::class, static fn() => $request->getQueryParams());
            self::assertSame([400, $why], [$refusal->status, $refusal->getMessage()]);
        }
    }

    public function testARequestIsImmutable(): void
    {
        $request = self::request("GET /a?b=1 HTTP/1.1\r\nHost: a\r\n\r\n");
        $other = $request
            ->withMethod('PUT')
            ->withUri(new Uri('https://b:8/c?d=2'))
            ->withHeader('X', 'y')
            ->withAttribute('k', 'v')
            ->withBody(Stream::create('body'))
            ->withParsedBody(['p' => 1])
            ->withQueryParams(['q' => 2])
            ->withCookieParams(['c' => 3])
            ->withUploadedFiles([])
            ->withProtocolVersion('1.0');

        self::assertSame(
            ['GET', '/a?b=1', ['b' => '1'], 'a', null],
            [
                $request->getMethod(),
                $request->getRequestTarget(),
                $request->getQueryParams(),
                $request->getHeaderLine('Host'),
                $request->getAttribute('k'),
            ],
        );
        self::assertSame(['PUT', '/c?d=2', ['q' => 2], 'b:8', 'v', 'body', ['p' => 1], ['c' => 3], '1.0'], [
            $other->getMethod(),
            $other->getRequestTarget(),
            $other->getQueryParams(),
            $other->getHeaderLine('Host'),
            $other->getAttribute('k'),
            (string) $other->getBody(),
            $other->getParsedBody(),
            $other->getCookieParams(),
            $other->getProtocolVersion(),
        ]);
        self::assertSame('a', $request->withUri(new Uri('https://b/'), true)->getHeaderLine('Host'));
        self::assertNull($other->withoutAttribute('k')->getAttribute('k'));
        self::assertSame('/else', $other->withRequestTarget('/else')->getRequestTarget());
    }

    public function testAttributesIncludeTheCancellationAndTheRoute(): void
    {
        $request = self::request("GET / HTTP/1.1\r\nHost: a\r\n\r\n")->withAttribute('a', null);

        self::assertSame(['a', Cancellation::class, MatchedRoute::class], array_keys($request->getAttributes()));
        self::assertInstanceOf(Cancellation::class, $request->getAttribute(Cancellation::class));
        self::assertSame(
            $request->getAttribute(MatchedRoute::class),
            $request->withMethod('PUT')->getAttribute(MatchedRoute::class),
        );
        self::assertSame('default', $request->getAttribute('b', 'default'));
        self::assertNull($request->getAttribute('a', 'default'));
    }

    public function testQueryAndCookiesAreThoseThatWereReceivedWhetherTheyWereReadBeforeOrNot(): void
    {
        foreach ([false, true] as $wasRead) {
            $request = self::request("GET /a?q=1 HTTP/1.1\r\nHost: a\r\nCookie: c=1\r\n\r\n");
            $wasRead ? [$request->getQueryParams(), $request->getCookieParams()] : null;
            $changed = $request->withUri(new Uri('https://b/?q=2'))->withHeader('Cookie', 'c=2')->withHeader('X', 'y');

            self::assertSame(
                [['q' => '1'], ['c' => '1'], 'c=2', 'q=2'],
                [
                    $changed->getQueryParams(),
                    $changed->getCookieParams(),
                    $changed->getHeaderLine('Cookie'),
                    $changed->getUri()->getQuery(),
                ],
            );
            self::assertSame(['c' => '1'], $request->withoutHeader('Cookie')->getCookieParams());
        }
    }

    public function testATargetThatWasSetIsKept(): void
    {
        $request = self::request("GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
        $moved = $request->withUri(new Uri('http://b/c?d'))->withUri(new Uri('http://b'));

        self::assertSame('*', $request->withRequestTarget('*')->withUri(new Uri('http://b/c'))->getRequestTarget());
        self::assertSame(
            ['/', '/c?d'],
            [$moved->getRequestTarget(), $moved->withUri(new Uri('http://b/c?d'))->getRequestTarget()],
        );
    }

    public function testTheCancellationAndTheRouteCanBeRemoved(): void
    {
        $request = self::request("GET / HTTP/1.1\r\nHost: a\r\n\r\n")->withAttribute('a', 1);
        foreach ([
            [Cancellation::class, MatchedRoute::class],
            [MatchedRoute::class, Cancellation::class],
        ] as [$gone, $kept]) {
            $without = $request->withoutAttribute($gone);

            self::assertSame(
                ['none', ['a', $kept]],
                [$without->getAttribute($gone, 'none'), array_keys($without->getAttributes())],
            );
            self::assertInstanceOf($kept, $without->getAttribute($kept));
            $again = $without->withAttribute($gone, 'x');
            self::assertSame(['x', 'x'], [$again->getAttribute($gone), $again->getAttributes()[$gone] ?? null]);
            self::assertSame('none', $again->withoutAttribute($gone)->getAttribute($gone, 'none'));
        }
    }

    public function testInvalidPartsOfARequestAreRefused(): void
    {
        $request = self::request("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        foreach ([
            static fn(): ServerRequestInterface => $request->withMethod('A B'),
            static fn(): ServerRequestInterface => $request->withMethod(''),
            static fn(): ServerRequestInterface => $request->withRequestTarget("/a\r\nb"),
            static fn(): ServerRequestInterface => $request->withRequestTarget("/a\0b"),
            static fn(): ServerRequestInterface => $request->withUploadedFiles(['a' => ['b' => 'c']]),
            static fn(): ServerRequestInterface => $request->withProtocolVersion('1.1 '),
            static fn(): ServerRequestInterface => $request->withHeader('X', "a\r\nb"),
        ] as $number => $change) {
            self::thrown(\InvalidArgumentException::class, static fn() => $change());
            $this->addToAssertionCount(1);
        }
    }

    private static function request(string $bytes, ?Peer $peer = null): Request
    {
        $parser = new RequestParser(new MessageLimits());
        $parser->push($bytes);
        $head = $parser->readHead();
        self::assertNotNull($head);

        return new Request($head, new FixedExchange($peer ?? Peer::of('192.0.2.1:1', '192.0.2.2:80', false)));
    }
}

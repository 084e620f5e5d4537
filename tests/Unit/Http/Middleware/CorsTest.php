<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Middleware;

use Nyholm\Psr7\ServerRequest;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Psr\Http\Message\ResponseInterface;
use Spindle\Http\Middleware\Cors;
use Spindle\Http\Response;

final class CorsTest extends TestCase
{
    private const APP = 'https://app.example';

    public function testAnAllowedOriginMayRead(): void
    {
        $response = self::simple(new Cors([self::APP]), self::APP);

        self::assertSame('answer', (string) $response->getBody());
        self::assertSame(
            ['Access-Control-Allow-Origin' => [self::APP], 'Vary' => ['Origin']],
            self::headers($response),
        );
    }

    public function testAllOriginsGetTheSameAnswer(): void
    {
        foreach (['*', ['*'], ['*', self::APP]] as $origins) {
            foreach ([self::APP, 'null', '', 'garbage'] as $origin) {
                self::assertSame(
                    ['Access-Control-Allow-Origin' => ['*']],
                    self::headers(self::simple(new Cors($origins), $origin)),
                );
            }
        }
    }

    /** @return iterable<string, array{string}> */
    public static function equalOrigins(): iterable
    {
        yield 'itself' => ['https://app.example'];
        yield 'letters' => ['HTTPS://App.Example'];
        yield "the scheme's own port" => ['https://app.example:443'];
    }

    public function testThePortOfPlainHttpNeedNotBeWrittenEither(): void
    {
        self::assertSame(
            'http://app.example',
            self::simple(
                new Cors(['http://app.example:80']),
                'http://app.example',
            )->getHeaderLine('Access-Control-Allow-Origin'),
        );
    }

    #[DataProvider('equalOrigins')]
    public function testAnOriginIsComparedAsAnOrigin(string $origin): void
    {
        self::assertSame(
            $origin,
            self::simple(new Cors(['Https://APP.example:443']), $origin)->getHeaderLine('Access-Control-Allow-Origin'),
        );
    }

    /** @return iterable<string, array{string|list<string>}> */
    public static function strangers(): iterable
    {
        yield 'none' => [''];
        yield 'another host' => ['https://evil.example'];
        yield 'another scheme' => ['http://app.example'];
        yield 'another port' => ['https://app.example:8443'];
        yield 'a longer host' => ['https://app.example.evil.example'];
        yield 'a host before' => ['https://evilapp.example'];
        yield 'a host below' => ['https://www.app.example'];
        yield 'a final dot' => ['https://app.example.'];
        yield 'a user' => ['https://app.example@evil.example'];
        yield 'a path' => ['https://app.example/'];
        yield 'null' => ['null'];
        yield 'the star' => ['*'];
        yield 'two' => ['https://app.example, https://evil.example'];
        yield 'two fields' => [['https://app.example', 'https://evil.example']];
        yield 'a blank' => ['https://app.example evil'];
        yield 'another scheme with the same port' => ['http://app.example:443'];
        yield 'something before' => ['evil https://app.example'];
        yield 'another before' => ['https://evil.example,https://app.example'];
        yield 'a port of many digits' => ['https://app.example:000443'];
        yield 'bytes' => ["https://app.example\x80"];
        yield 'a great deal' => ['https://' . str_repeat('a', 30_000)];
    }

    /** @param string|list<string> $origin */
    #[DataProvider('strangers')]
    public function testOtherOriginsGetNoHeaders(string|array $origin): void
    {
        $cors = new Cors([self::APP, 'http://other.example:8080'], credentials: true, exposedHeaders: ['X-A']);

        self::assertSame(['Vary' => ['Origin']], self::headers(self::simple($cors, $origin)));
        $vary = $origin === '' ? 'Origin' : 'Access-Control-Request-Method, Access-Control-Request-Headers, Origin';
        self::assertSame(['Vary' => [$vary]], self::headers(self::preflight($cors, $origin)));
    }

    public function testOriginsOfOtherKindsCanBeAllowed(): void
    {
        foreach ([
            'http://127.0.0.1:3000',
            'http://[2001:db8::10]:3000',
            'capacitor://localhost',
            'chrome-extension://abcdef',
        ] as $origin) {
            self::assertSame(
                $origin,
                self::simple(new Cors([self::APP, $origin]), $origin)->getHeaderLine('Access-Control-Allow-Origin'),
            );
        }
    }

    public function testAllowedCredentialsAndHeadersAreDeclared(): void
    {
        $response = self::simple(
            new Cors([self::APP], exposedHeaders: ['X-Total', 'Link'], credentials: true),
            self::APP,
        );

        self::assertSame([
            'Access-Control-Allow-Credentials' => ['true'],
            'Access-Control-Allow-Origin' => [self::APP],
            'Access-Control-Expose-Headers' => ['X-Total, Link'],
            'Vary' => ['Origin'],
        ], self::headers($response));
    }

    public function testAPreflightIsAnsweredAndTheHandlerDoesNotSeeIt(): void
    {
        $handler = new Handler();
        $cors = new Cors([self::APP], ['GET', 'PUT'], ['Content-Type', 'X-Token'], ['X-Total'], true, 600);
        $response = $cors->process(self::preflightRequest(self::APP), $handler);

        self::assertNull($handler->request);
        self::assertSame(204, $response->getStatusCode());
        self::assertSame('', (string) $response->getBody());
        self::assertSame([
            'Access-Control-Allow-Credentials' => ['true'],
            'Access-Control-Allow-Headers' => ['Content-Type, X-Token'],
            'Access-Control-Allow-Methods' => ['GET, PUT'],
            'Access-Control-Allow-Origin' => [self::APP],
            'Access-Control-Max-Age' => ['600'],
            'Vary' => ['Access-Control-Request-Method, Access-Control-Request-Headers, Origin'],
        ], self::headers($response));
    }

    public function testAPreflightNeverEchoesItsRequest(): void
    {
        $headers = self::headers(self::preflight(new Cors('*'), self::APP));

        self::assertSame(['GET, HEAD, POST'], $headers['Access-Control-Allow-Methods']);
        self::assertArrayNotHasKey('Access-Control-Allow-Headers', $headers);
        self::assertArrayNotHasKey('Access-Control-Max-Age', $headers);
    }

    public function testSecondsMayBeNone(): void
    {
        self::assertSame(
            '0',
            self::preflight(new Cors('*', maxAge: 0), self::APP)->getHeaderLine('Access-Control-Max-Age'),
        );
    }

    /** @return iterable<string, array{string, array<string, string>}> */
    public static function noPreflights(): iterable
    {
        yield 'another method' => ['POST', ['Origin' => self::APP, 'Access-Control-Request-Method' => 'PUT']];
        yield 'no origin' => ['OPTIONS', ['Access-Control-Request-Method' => 'PUT']];
        yield 'no method asked for' => ['OPTIONS', ['Origin' => self::APP]];
        yield 'OPTIONS in small letters, which is another method' => [
            'options',
            ['Origin' => self::APP, 'Access-Control-Request-Method' => 'PUT'],
        ];
    }

    /** @param array<string, string> $headers */
    #[DataProvider('noPreflights')]
    public function testWhatIsNoPreflightReachesTheHandler(string $method, array $headers): void
    {
        $handler = new Handler();
        $response = (new Cors([self::APP]))->process(new ServerRequest($method, '/', $headers), $handler);

        self::assertSame($method, $handler->got()->getMethod());
        self::assertSame('Origin', $response->getHeaderLine('Vary'));
    }

    public function testWhatTheHandlerVariesByIsKept(): void
    {
        $vary = static fn(string $vary): string
            => self::simple(new Cors([self::APP]), self::APP, ['Vary' => $vary])->getHeaderLine('Vary');

        self::assertSame('Accept-Encoding, Origin', $vary('Accept-Encoding'));
        self::assertSame('accept,ORIGIN', $vary('accept,ORIGIN'));
        self::assertSame('*', $vary('*'));
        self::assertSame('X-Origin, Origin', $vary('X-Origin'));
    }

    public function testTheHandlersOwnHeadersOfThisKindDoNotReachAStranger(): void
    {
        $own = [
            'access-control-allow-origin' => 'https://evil.example',
            'Access-Control-Allow-Credentials' => 'true',
            'Access-Control-Expose-Headers' => '*',
        ];

        self::assertSame(
            ['Vary' => ['Origin']],
            self::headers(self::simple(new Cors([self::APP]), 'https://evil.example', $own)),
        );
        self::assertSame(
            ['Access-Control-Allow-Origin' => [self::APP], 'Vary' => ['Origin']],
            self::headers(self::simple(new Cors([self::APP]), self::APP, $own)),
        );
    }

    /** @return iterable<string, array{\Closure(): Cors, string}> */
    public static function mistakes(): iterable
    {
        yield 'any origin with credentials' => [static fn() => new Cors('*', credentials: true), 'With credentials'];
        yield 'any origin among others' => [
            static fn() => new Cors([self::APP, '*'], credentials: true),
            'With credentials',
        ];
        yield 'any method with credentials' => [
            static fn() => new Cors([self::APP], ['*'], credentials: true),
            'With credentials',
        ];
        yield 'any header with credentials' => [
            static fn() => new Cors([self::APP], headers: ['*'], credentials: true),
            'With credentials',
        ];
        yield 'all headers shown with credentials' => [
            static fn() => new Cors([self::APP], exposedHeaders: ['*'], credentials: true),
            'With credentials',
        ];
        yield 'a host alone' => [static fn() => new Cors(['app.example']), '"app.example"'];
        yield 'a path' => [static fn() => new Cors(['https://app.example/']), 'app.example\/"'];
        yield 'a wildcard in a host' => [static fn() => new Cors(['https://*.example']), '*.example'];
        yield 'null' => [static fn() => new Cors(['null']), '"null"'];
        yield 'a method with a blank' => [static fn() => new Cors('*', ['GET POST']), '"GET POST"'];
        yield 'a header with a line break' => [static fn() => new Cors('*', headers: ["X\r\nY: z"]), '"X\r\nY: z"'];
        yield 'an empty header' => [static fn() => new Cors('*', exposedHeaders: ['']), '""'];
        yield 'seconds below 0' => [static fn() => new Cors('*', maxAge: -1), 'not -1'];
    }

    /** @param \Closure(): Cors $make */
    #[DataProvider('mistakes')]
    public function testAPolicyThatCantWorkIsRefused(\Closure $make, string $message): void
    {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage($message);
        $make();
    }

    /**
     * @param string|list<string>   $origin
     * @param array<string, string> $headers of the handler's response
     */
    private static function simple(Cors $cors, string|array $origin, array $headers = []): ResponseInterface
    {
        return $cors->process(
            new ServerRequest('GET', '/', $origin === '' ? [] : ['Origin' => $origin]),
            new Handler(new Response(200, $headers, 'answer')),
        );
    }

    /** @param string|list<string> $origin */
    private static function preflight(Cors $cors, string|array $origin): ResponseInterface
    {
        return $cors->process(self::preflightRequest($origin), new Handler(new Response()));
    }

    /** @param string|list<string> $origin */
    private static function preflightRequest(string|array $origin): ServerRequest
    {
        $asked = ['Access-Control-Request-Method' => 'DELETE', 'Access-Control-Request-Headers' => 'x-evil'];

        return new ServerRequest('OPTIONS', '/', $asked + ($origin === '' ? [] : ['Origin' => $origin]));
    }

    /** @return array<array<string>> by name, sorted */
    private static function headers(ResponseInterface $response): array
    {
        $headers = $response->getHeaders();
        ksort($headers);

        return $headers;
    }
}

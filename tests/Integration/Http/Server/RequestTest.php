<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Http\Server;

use Psr\Http\Message\ServerRequestInterface;
use Spindle\Http\Response;
use Spindle\Tests\Http\HttpServerTestCase;

/** The request that a handler gets through a socket. */
final class RequestTest extends HttpServerTestCase
{
    public function testAHandlerSeesWhatTheClientSent(): void
    {
        $this->serve(static fn(ServerRequestInterface $request): Response => Response::json([
            'method' => $request->getMethod(),
            'target' => $request->getRequestTarget(),
            'uri' => (string) $request->getUri(),
            'version' => $request->getProtocolVersion(),
            'query' => $request->getQueryParams(),
            'cookies' => $request->getCookieParams(),
            'accept' => $request->getHeader('accept'),
            'attribute' => $request->withAttribute('a', 'b')->getAttribute('a'),
        ]));
        $client = $this->client()->request(
            'PATCH',
            '/a%20b/?c[]=1&c[]=2&d=%C3%A9',
            "Accept: text/html\r\nACCEPT: */*\r\nCookie: a=1; b=%20\r\n",
        );

        self::assertSame([
            'method' => 'PATCH',
            'target' => '/a%20b/?c[]=1&c[]=2&d=%C3%A9',
            'uri' => 'http://server.test/a%20b/?c%5B%5D=1&c%5B%5D=2&d=%C3%A9',
            'version' => '1.1',
            'query' => ['c' => ['1', '2'], 'd' => 'é'],
            'cookies' => ['a' => '1', 'b' => ' '],
            'accept' => ['text/html', '*/*'],
            'attribute' => 'b',
        ], $client->response()->json());
    }

    public function testServerParametersHaveTheAddressesOfBothEnds(): void
    {
        $this->serve(
            static fn(ServerRequestInterface $request): Response => Response::json($request->getServerParams()),
        );
        $client = $this->client();
        $parameters = $client->get('/a?b=c')->response()->json();
        [, $serverPort] = explode(':', (string) stream_socket_get_name($client->stream(), true));
        [, $clientPort] = explode(':', (string) stream_socket_get_name($client->stream(), false));

        self::assertIsArray($parameters);
        self::assertIsFloat($parameters['REQUEST_TIME_FLOAT']);
        self::assertEqualsWithDelta(microtime(true), $parameters['REQUEST_TIME_FLOAT'], 10);
        self::assertSame((int) $parameters['REQUEST_TIME_FLOAT'], $parameters['REQUEST_TIME']);
        unset($parameters['REQUEST_TIME_FLOAT'], $parameters['REQUEST_TIME']);
        self::assertSame([
            'REQUEST_METHOD' => 'GET',
            'REQUEST_URI' => '/a?b=c',
            'QUERY_STRING' => 'b=c',
            'SERVER_PROTOCOL' => 'HTTP/1.1',
            'REQUEST_SCHEME' => 'http',
            'REMOTE_ADDR' => '127.0.0.1',
            'REMOTE_PORT' => (int) $clientPort,
            'SERVER_ADDR' => '127.0.0.1',
            'SERVER_PORT' => (int) $serverPort,
        ], $parameters);
    }

    public function testOptionsCanHaveAnAsteriskAsItsTarget(): void
    {
        $this->serve(
            static fn(ServerRequestInterface $request): Response
                => Response::json([$request->getMethod(), $request->getRequestTarget(), (string) $request->getUri()]),
        );

        self::assertSame(
            ['OPTIONS', '*', 'http://server.test'],
            $this->client()->request('OPTIONS', '*')->response()->json(),
        );
    }

    public function testTheTargetMayBeAnAbsoluteUri(): void
    {
        $this->serve(
            static fn(ServerRequestInterface $request): Response
                => Response::json([(string) $request->getUri(), $request->getQueryParams()]),
        );

        self::assertSame(
            ['http://other.test:81/path?a=b', ['a' => 'b']],
            $this->client()->get('http://other.test:81/path?a=b')->response()->json(),
        );
    }

    public function testTheHostIsTakenFromTheRequest(): void
    {
        $this->serve(
            static fn(ServerRequestInterface $request): Response
                => Response::json([$request->getUri()->getHost(), $request->getUri()->getPort()]),
        );

        self::assertSame(
            ['example.test', 8080],
            $this->client()->send("GET / HTTP/1.1\r\nHost: example.test:8080\r\n\r\n")->response()->json(),
        );
        $port = (int) substr((string) strrchr($this->address, ':'), 1);
        self::assertSame(['127.0.0.1', $port], $this->client()->send("GET / HTTP/1.0\r\n\r\n")->response()->json());
    }

    public function testAnInvalidTargetIsRefusedOnlyWhenItsUriIsUsed(): void
    {
        $this->serve(
            static fn(ServerRequestInterface $request): Response
                => Response::text(
                    $request->getHeaderLine('X-Ask') === '' ? 'did not ask' : (string) $request->getUri(),
                ),
        );
        $client = $this->client()->send(
            "GET / HTTP/1.1\r\nHost: a:99999\r\n\r\nGET / HTTP/1.1\r\nHost: a:99999\r\nX-Ask: yes\r\n\r\n",
        );

        self::assertSame('did not ask', $client->response()->body);
        self::assertSame(400, $client->response()->status);
        self::assertSame([], $this->log()->failures());
    }

    public function testRequestsOfOneConnectionAreIndependent(): void
    {
        $this->serve(
            static fn(ServerRequestInterface $request): Response
                => Response::json(
                    [$request->getHeaderLine('X'), $request->getCookieParams(), $request->getQueryParams()],
                ),
        );
        $client = $this->client()->get('/?a=1', "X: 1\r\nCookie: a=1\r\n")->get('/');

        self::assertSame(['1', ['a' => '1'], ['a' => '1']], $client->response()->json());
        self::assertSame(['', [], []], $client->response()->json());
    }
}

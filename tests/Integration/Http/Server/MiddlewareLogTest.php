<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Http\Server;

use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Log\LoggerInterface;
use Psr\Log\NullLogger;
use Spindle\Http\HttpServer;
use Spindle\Http\HttpServerOptions;
use Spindle\Http\Middleware\AccessLog;
use Spindle\Http\Middleware\ErrorHandler;
use Spindle\Http\Middleware\ProxyHeaders;
use Spindle\Http\Middleware\RequestId;
use Spindle\Http\Middleware\TrustedProxies;
use Spindle\Http\MiddlewareStack;
use Spindle\Http\Response;
use Spindle\Http\Testing\TestClient;
use Spindle\Tests\Eventually;
use Spindle\Tests\Http\HttpServerTestCase;
use Spindle\Tests\Http\Records;
use Spindle\Tests\ReadsErrorLog;

use function Amp\delay;

/** The log of middleware without a logger of its own. */
final class MiddlewareLogTest extends HttpServerTestCase
{
    use ReadsErrorLog;

    public function testFailuresGoToTheLogOfTheServer(): void
    {
        $lines = $this->errorLogOf(function (): void {
            $this->serve(self::failing());
            self::assertSame(500, $this->client()->get('/a?b')->response()->status);
        });

        self::assertSame([], $lines);
        self::assertSame(
            ['{method} {target} was answered with 500, because its handler failed'],
            $this->log()->messages(),
        );
        self::assertSame('/a?b', $this->log()->all[0]['context']['target']);
        self::assertSame(
            ['it fails'],
            array_map(static fn(\Throwable $failure): string => $failure->getMessage(), $this->log()->failures()),
        );
    }

    public function testEntriesOfTheServerHaveTheFieldsOfTheRequest(): void
    {
        $handler = static function (ServerRequestInterface $request): ResponseInterface {
            $request->getRequestTarget() === '/late' ? delay(0.5) : null;
            throw new \RuntimeException('it fails');
        };
        $this->serve(new MiddlewareStack(
            $handler,
            new TrustedProxies(['127.0.0.1'], ProxyHeaders::XForwarded),
            RequestId::keepingIncoming(),
        ), new HttpServerOptions(handlerTimeout: 0.2, blockWarning: 0));
        foreach (['/fails' => 500, '/late' => 503] as $target => $status) {
            $client = $this->client()->get($target, "X-Forwarded-For: 192.0.2.7\r\nX-Request-Id: id7\r\n");
            self::assertSame($status, $client->response()->status);
        }

        $expected = ['request_id' => 'id7', 'client_ip' => '192.0.2.7', 'method' => 'GET'];
        foreach (['/fails', '/late'] as $index => $target) {
            $context = array_diff_key($this->log()->all[$index]['context'], ['exception' => null]);
            self::assertEquals($expected + ['target' => $target], $context);
        }
    }

    public function testTheErrorHandlerLogsTheAddressOfTheClientAndAnIdFromAMiddlewareBelow(): void
    {
        $failing = static fn(ServerRequestInterface $request): ResponseInterface => throw new \RuntimeException('no');
        $this->serve(new MiddlewareStack($failing, new ErrorHandler(), RequestId::keepingIncoming()));
        self::assertSame(500, $this->client()->get('/', "X-Request-Id: id7\r\n")->response()->status);

        $context = $this->log()->all[0]['context'];
        self::assertSame(['id7', '127.0.0.1'], [$context['request_id'] ?? null, $context['client_ip'] ?? null]);
    }

    public function testALoggerOfItsOwnComesFirst(): void
    {
        $this->serve(self::failing($records = new Records()));
        self::assertSame(500, $this->client()->get('/')->response()->status);

        self::assertCount(1, $records->all);
        self::assertSame([], $this->log()->all);
    }

    public function testWhereTheServerHasNoLogTheyGoToPhps(): void
    {
        $lines = $this->errorLogOf(function (): void {
            $this->servers[] = $server = new HttpServer(self::failing(), logger: new NullLogger());
            [$this->address] = $server->start('127.0.0.1:0');
            self::assertSame(500, $this->client()->get('/')->response()->status);
        });

        self::assertCount(1, $lines);
        self::assertStringContainsString('Spindle: "GET /: RuntimeException: it fails in ', $lines[0]);
    }

    public function testATestSeesThemAmongTheFailures(): void
    {
        $client = new TestClient(self::failing());
        self::assertSame(500, $client->get('/')->getStatusCode());

        self::assertCount(1, $client->failures());
    }

    public function testAnAccessLogThatCanNotBeWrittenIsReportedToTheServer(): void
    {
        $lines = $this->errorLogOf(function (): void {
            $this->serve(new MiddlewareStack(
                static fn(): Response => Response::text(''),
                AccessLog::toFile('/dev/full'),
            ));
            foreach (range(1, 3) as $_) {
                self::assertSame(200, $this->client()->get('/')->response()->status);
            }
        });

        self::assertSame([], $lines);
        Eventually::holds(fn(): bool => \count($this->log()->all) === 1, 'it is reported');
        self::assertStringContainsString('Lines of the access log are lost', $this->log()->messages()[0]);
    }

    private static function failing(?LoggerInterface $logger = null): MiddlewareStack
    {
        return new MiddlewareStack(
            static fn(ServerRequestInterface $request): ResponseInterface => throw new \RuntimeException('it fails'),
            new ErrorHandler($logger),
        );
    }
}

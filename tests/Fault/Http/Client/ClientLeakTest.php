<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Http\Client;

use Amp\Cancellation;
use Amp\DeferredFuture;
use Amp\TimeoutCancellation;
use GuzzleHttp\Client;
use GuzzleHttp\HandlerStack;
use PHPUnit\Framework\Attributes\DataProvider;
use Psr\Http\Message\ServerRequestInterface;
use Spindle\Http\Client\GuzzleHandler;
use Spindle\Http\Client\HttpClient;
use Spindle\Http\Client\RequestBody;
use Spindle\Http\Client\SymfonyClient;
use Spindle\Http\Response;
use Spindle\Tests\Async;
use Spindle\Tests\Http\HttpServerTestCase;
use Spindle\Tests\MeasuresGrowth;

use function Amp\delay;
use function Amp\Future\await;

/** Requests of the three clients release their memory at their end, without PHP's garbage collector. */
final class ClientLeakTest extends HttpServerTestCase
{
    use MeasuresGrowth;

    private const ROUNDS = 100;

    /** Allowed bytes per round: one growth of PHP's own tables. The smallest request needs more. */
    private const MAX_GROWTH = 200;

    /** @return iterable<string, array{\Closure(HttpClient, string): mixed}> */
    public static function requests(): iterable
    {
        yield 'text' => [static fn(HttpClient $client, string $url) => (string) $client->get($url)->getBody()];
        yield 'stream' => [static fn(HttpClient $client, string $url) => (string) $client->get("{$url}/2")->getBody()];
        yield 'unread body' => [static fn(HttpClient $client, string $url) => $client->get("{$url}/long")];
        yield 'endless body' => [
            static fn(HttpClient $client, string $url) => $client->get("{$url}/endless")->getBody()->read(1),
        ];
        yield 'multipart' => [static fn(HttpClient $client, string $url) => (string) $client->request(
            'POST',
            $url,
            body: RequestBody::multipart(['name' => 'value']),
        )->getBody()];
        yield 'concurrent' => [static fn(HttpClient $client, string $url) => await([
            Async::run(static fn() => (string) $client->get($url)->getBody()),
            Async::run(static fn() => (string) $client->get("{$url}/2")->getBody()),
        ])];
        yield 'cancelled' => [static fn(HttpClient $client, string $url) => self::ignoreFailure(
            static fn() => $client->get("{$url}/wait", cancellation: new TimeoutCancellation(0.001)),
        )];
        yield 'refused' => [static fn(HttpClient $client) => self::ignoreFailure(
            static fn() => $client->get('http://127.0.0.1:1'),
        )];
        yield 'client' => [static fn(HttpClient $_, string $url) => (string) (new HttpClient())->get($url)->getBody()];
    }

    /** @param \Closure(HttpClient, string): mixed $request */
    #[DataProvider('requests')]
    public function testARequestOfHttpClientLeavesNothingInMemory(\Closure $request): void
    {
        $url = $this->url();
        $client = new HttpClient();

        self::assertNoGrowth(static fn() => $request($client, $url), self::ROUNDS, self::MAX_GROWTH);
        self::assertLessThan(10, $this->server()->statistics()->connections);
    }

    /** @return iterable<string, array{\Closure(SymfonyClient, string): mixed}> */
    public static function requestsOfSymfony(): iterable
    {
        yield 'content' => [
            static fn(SymfonyClient $client, string $url) => $client->request('GET', $url)->getContent(),
        ];
        yield 'status' => [
            static fn(SymfonyClient $client, string $url) => $client->request('GET', "{$url}/long")->getStatusCode(),
        ];
        yield 'stream of several' => [static function (SymfonyClient $client, string $url): void {
            foreach ($client->stream([$client->request('GET', $url), $client->request('GET', "{$url}/2")]) as $chunk) {
                $chunk->getContent();
            }
        }];
        yield 'dropped' => [static function (SymfonyClient $client, string $url): void {
            $client->request('GET', $url);
            delay(0);
        }];
        yield 'cancelled' => [static function (SymfonyClient $client, string $url): void {
            $response = $client->request('GET', "{$url}/wait");
            delay(0);
            $response->cancel();
        }];
        yield 'refused' => [static fn(SymfonyClient $client) => self::ignoreFailure(
            static fn() => $client->request('GET', 'http://127.0.0.1:1')->getContent(),
        )];
        yield 'file' => [static function (SymfonyClient $client, string $url): void {
            $file = tmpfile();
            \assert($file !== false);
            fwrite($file, 'content');
            rewind($file);
            $client->request('PUT', $url, ['body' => $file])->getContent();
        }];
    }

    /** @param \Closure(SymfonyClient, string): mixed $request */
    #[DataProvider('requestsOfSymfony')]
    public function testARequestOfSymfonyClientLeavesNothingInMemory(\Closure $request): void
    {
        $url = $this->url();
        $client = new SymfonyClient();

        self::assertNoGrowth(static fn() => $request($client, $url), self::ROUNDS, self::MAX_GROWTH);
        self::assertLessThan(10, $this->server()->statistics()->connections);
    }

    /** @return iterable<string, array{\Closure(Client, string): mixed}> */
    public static function requestsOfGuzzle(): iterable
    {
        yield 'text' => [static fn(Client $client, string $url) => (string) $client->get($url)->getBody()];
        yield 'stream' => [
            static fn(Client $client, string $url) => (string) $client->get("{$url}/2", ['stream' => true])->getBody(),
        ];
        yield 'promise' => [static fn(Client $client, string $url) => $client->getAsync($url)->wait()];
        yield 'cancelled' => [static function (Client $client, string $url): void {
            $promise = $client->getAsync("{$url}/wait");
            delay(0);
            $promise->cancel();
        }];
        yield 'refused' => [static fn(Client $client) => self::ignoreFailure(
            static fn() => $client->get('http://127.0.0.1:1'),
        )];
    }

    /** @param \Closure(Client, string): mixed $request */
    #[DataProvider('requestsOfGuzzle')]
    public function testARequestOfGuzzleLeavesNothingInMemory(\Closure $request): void
    {
        $url = $this->url();
        $client = new Client(['handler' => HandlerStack::create(new GuzzleHandler())]);

        self::assertNoGrowth(static fn() => $request($client, $url), self::ROUNDS, self::MAX_GROWTH);
        self::assertLessThan(10, $this->server()->statistics()->connections);
    }

    /** @param \Closure(): mixed $call */
    private static function ignoreFailure(\Closure $call): void
    {
        try {
            $call();
        } catch (\Throwable) {
            // The test is about what the failure leaves in memory.
        }
    }

    private function url(): string
    {
        $this->serve(static fn(ServerRequestInterface $request): Response => match ($request->getUri()->getPath()) {
            '/2' => Response::stream(self::pieces(2)),
            '/endless' => Response::stream(self::pieces(\PHP_INT_MAX)),
            '/long' => Response::text(str_repeat('a', 200_000)),
            '/wait' => self::awaitDisconnection($request),
            default => Response::text('hello'),
        });

        return 'http' . substr($this->address, \strlen('tcp'));
    }

    private static function awaitDisconnection(ServerRequestInterface $request): never
    {
        $disconnection = $request->getAttribute(Cancellation::class);
        \assert($disconnection instanceof Cancellation);
        (new DeferredFuture())->getFuture()->await($disconnection);

        throw new \LogicException('The client has not disconnected');
    }

    /** @return \Generator<string> */
    private static function pieces(int $count): \Generator
    {
        for ($i = 0; $i < $count; ++$i) {
            yield 'a';
            delay(0);
        }
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Http\Client;

use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Psr\Http\Message\ServerRequestInterface;
use Spindle\Http\Client\HttpClient;
use Spindle\Http\Client\HttpClientOptions;
use Spindle\Http\Client\SymfonyClient;
use Spindle\Http\Response;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\Eventually;
use Spindle\Tests\Http\ServesHttp;
use Symfony\Component\HttpClient\RetryableHttpClient;
use Symfony\Contracts\HttpClient\Exception\TransportExceptionInterface;
use Symfony\Contracts\HttpClient\HttpClientInterface;
use Symfony\Contracts\HttpClient\ResponseInterface;

use function Amp\async;
use function Amp\delay;

/** Tests that a response is received only as fast as it is read. */
final class SymfonyUnreadBodyTest extends TestCase
{
    use CatchesThrown;
    use EndsInTime;
    use ServesHttp;

    /** Bytes of the long body, more than the buffers of a connection. */
    private const LENGTH = 48 << 20;

    private const MAX_UNREAD = 1 << 20;

    #[TestWith([false])]
    #[TestWith([true])]
    public function testAnUnreadBodyIsNotReceived(bool $isDecorated): void
    {
        $client = $this->client($isDecorated);
        $long = $client->request('GET', "{$this->address()}/long", ['buffer' => false]);
        self::assertSame(200, $long->getStatusCode());
        $other = '';
        for ($count = 0; $count < 20; ++$count) {
            $other .= $client->request('GET', $this->address())->getContent();
        }

        self::assertSame(2_000_000 * 20, \strlen($other));
        self::assertLessThanOrEqual(self::MAX_UNREAD, self::received($long));
        self::assertSame([self::LENGTH, true], $this->read($client, $long));
    }

    #[TestWith([false])]
    #[TestWith([true])]
    public function testASlowReaderNeedsLittleMemory(bool $isDecorated): void
    {
        $client = $this->client($isDecorated);
        $response = $client->request('GET', "{$this->address()}/long", ['buffer' => false]);
        [$count, $maximum] = [0, 0];
        foreach ($client->stream($response) as $chunk) {
            $count += \strlen($chunk->getContent());
            $maximum = max($maximum, self::received($response) - $count);
            delay(0);
        }

        self::assertSame(self::LENGTH, $count);
        self::assertLessThanOrEqual(self::MAX_UNREAD, $maximum);
    }

    public function testOneReaderStreamsSeveralLongBodies(): void
    {
        $client = $this->client(false);
        $responses = array_map(
            fn(int $index): ResponseInterface => $client->request('GET', "{$this->address()}/long?{$index}"),
            [1, 2, 3],
        );
        $responses[0]->getStatusCode();
        $count = 0;
        foreach ($client->stream($responses) as $chunk) {
            $count += \strlen($chunk->getContent());
        }

        self::assertSame(3 * self::LENGTH, $count);
    }

    public function testAShortBodyOfManyChunksReleasesItsConnection(): void
    {
        /** @var \ArrayObject<int, ResponseInterface> $slow */
        $slow = new \ArrayObject();
        $this->serve(static fn(): Response => Response::stream((static function () use ($slow): \Generator {
            for ($count = 1; $count <= 200; ++$count) {
                yield 'x';
                while (isset($slow[0]) && self::received($slow[0]) < $count) {
                    delay(0); // so that each chunk arrives separately
                }
            }
        })()));
        $client = new SymfonyClient(new HttpClient(new HttpClientOptions(maxConnectionsPerHost: 1)));
        $slow[] = $unread = $client->request('GET', $this->address());
        self::assertSame(200, $unread->getStatusCode());
        Eventually::holds(static fn(): bool => self::received($unread) === 200, 'the whole body is received');
        unset($slow[0]);

        self::assertSame(200, \strlen($client->request('GET', $this->address())->getContent()));
        self::assertSame(200, \strlen($unread->getContent()));
    }

    public function testALongBodyOfShortChunksIsReceivedUpToTheLimit(): void
    {
        $this->serve(static fn(): Response => Response::stream(array_fill(0, 30_000, str_repeat('x', 99))));
        $client = new SymfonyClient();
        $long = $client->request('GET', $this->address(), ['buffer' => false]);
        $long->getStatusCode();
        Eventually::holds(static fn(): bool => self::received($long) === self::MAX_UNREAD, 'the limit is reached');

        self::assertSame([30_000 * 99, true], $this->read($client, $long));
    }

    #[TestWith([false])]
    #[TestWith([true])]
    public function testTheEndOfAnUnreadResponseReleasesItsConnection(bool $isCancelled): void
    {
        $client = new SymfonyClient(new HttpClient(new HttpClientOptions(maxConnectionsPerHost: 1)));
        $this->client(false);
        $long = $this->stalled($client);
        if ($isCancelled) {
            $long->cancel();
        } else {
            unset($long);
        }

        self::assertSame(200, $client->request('GET', $this->address())->getStatusCode());
    }

    public function testRequestsWaitWhileTheConnectionsAreInUse(): void
    {
        $client = $this->clientOfOneConnection();
        $this->serve(static function (): Response {
            delay(0.1);

            return Response::text('x');
        });
        $responses = array_map(fn() => $client->request('GET', $this->address()), range(1, 5));
        $contents = '';
        foreach ($client->stream($responses) as $chunk) {
            $contents .= $chunk->getContent();
        }

        self::assertSame('xxxxx', $contents);
    }

    public function testARequestDoesNotWaitForeverForUnreadResponses(): void
    {
        $client = $this->clientOfOneConnection();
        $this->client(false);
        $long = $this->stalled($client);
        $other = $client->request('GET', $this->address());
        $failure = self::thrown(TransportExceptionInterface::class, static fn() => $other->getStatusCode());
        self::assertStringEndsWith(
            'all connections are in use, but for 0.05 s, no fiber has read a response or sent a body'
                . ' (HttpClientOptions::$acquireTimeout)',
            $failure->getMessage(),
        );

        self::assertSame([self::LENGTH, true], $this->read($client, $long));
    }

    public function testTheMaximumDurationEndsAnUnreadBody(): void
    {
        $client = $this->client(false);
        $long = $this->stalled($client, ['max_duration' => 1.0]);
        $end = microtime(true) + 1;
        Eventually::holds(static fn(): bool => microtime(true) > $end, 'the time is over');

        $this->expectException(TransportExceptionInterface::class);
        $this->expectExceptionMessage('Max duration was reached');
        $this->read($client, $long);
    }

    public function testAFiberCanContinueToReadABodyThatAnotherFiberHasBegun(): void
    {
        $client = $this->client(false);
        $long = $this->stalled($client);
        $count = 0;
        foreach ($client->stream($long) as $chunk) {
            $count += \strlen($chunk->getContent());
            if ($count > 0) {
                break;
            }
        }
        async(function () use ($client, $long, &$count): void {
            $count += $this->read($client, $long)[0];
        })->await();

        self::assertSame(self::LENGTH, $count);
    }

    /** @return array{int, bool} number of bytes, and whether the last chunk has arrived */
    private function read(HttpClientInterface $client, ResponseInterface $response): array
    {
        [$count, $isComplete] = [0, false];
        foreach ($client->stream($response) as $chunk) {
            $count += \strlen($chunk->getContent());
            $isComplete = $chunk->isLast();
        }

        return [$count, $isComplete];
    }

    private static function received(ResponseInterface $response): int
    {
        $size = $response->getInfo('size_download');
        \assert(\is_float($size));

        return (int) $size;
    }

    /**
     * Returns a long response that is received up to the limit.
     *
     * @param array<string, mixed> $options
     */
    private function stalled(HttpClientInterface $client, array $options = []): ResponseInterface
    {
        $long = $client->request('GET', "{$this->address()}/long", ['buffer' => false] + $options);
        self::assertSame(200, $long->getStatusCode());
        Eventually::holds(
            static fn(): bool => self::received($long) > self::MAX_UNREAD / 2,
            'the response is received up to the limit',
        );

        return $long;
    }

    private function clientOfOneConnection(): SymfonyClient
    {
        return new SymfonyClient(new HttpClient(new HttpClientOptions(
            maxConnectionsPerHost: 1,
            acquireTimeout: 0.05,
            maxWaiting: 1,
        )));
    }

    /** Starts a server, and returns a client. */
    private function client(bool $isDecorated): HttpClientInterface
    {
        $this->serve(static fn(ServerRequestInterface $request): Response => Response::stream(
            str_contains($request->getRequestTarget(), 'long')
                ? array_fill(0, self::LENGTH >> 20, str_repeat('x', 1 << 20))
                : [str_repeat('x', 2_000_000)],
        ));

        return $isDecorated ? new RetryableHttpClient(new SymfonyClient()) : new SymfonyClient();
    }

    private function address(): string
    {
        return 'http' . substr($this->address, \strlen('tcp'));
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Http\Client;

use Psr\Http\Message\ServerRequestInterface;
use Spindle\Http\Client\SymfonyClient;
use Spindle\Http\Internal\Client\SymfonyResponse;
use Spindle\Http\Response;
use Spindle\Tests\Eventually;
use Spindle\Tests\Http\HttpServerTestCase;

use function Amp\delay;

/** Tests bodies that are the stream of another response, and whose reads suspend. */
final class SymfonyStreamBodyTest extends HttpServerTestCase
{
    private const SOURCE = "x0\nx1\nx2\nx3\nx4\nx5\n";

    public function testARedirectDuringTheUploadOfAStreamChangesNoBytes(): void
    {
        $url = $this->url();
        $client = new SymfonyClient();

        self::assertSame(self::SOURCE, $client->request('PUT', "{$url}/redirect", [
            'body' => self::source($client, $url),
        ])->getContent());
    }

    public function testACancelledUploadOfAStreamChangesNoBytesOfTheNext(): void
    {
        $url = $this->url();
        $client = new SymfonyClient();
        $source = self::source($client, $url);
        $sent = 0;
        $first = $client->request('PUT', $url, [
            'body' => $source,
            'on_progress' => static function (int $received, int $expected, array $info) use (&$sent): void {
                $sent = $info['size_upload'];
            },
        ]);
        Eventually::holds(static function () use (&$sent): bool {
            return $sent > 0;
        }, 'the upload has begun');
        $first->cancel();
        $rest = $client->request('PUT', $url, ['body' => $source])->getContent();

        self::assertNotSame('', $rest);
        self::assertStringEndsWith($rest, self::SOURCE);
    }

    private static function source(SymfonyClient $client, string $url): mixed
    {
        $response = $client->request('GET', "{$url}/source");
        \assert($response instanceof SymfonyResponse);

        return $response->toStream();
    }

    private function url(): string
    {
        $this->serve(static fn(ServerRequestInterface $request): Response => match ($request->getUri()->getPath()) {
            '/source' => Response::stream((static function (): \Generator {
                foreach (explode("\n", rtrim(self::SOURCE)) as $line) {
                    yield "{$line}\n";
                    delay(0.01);
                }
            })()),
            '/redirect' => new Response(307, ['Location' => '/']),
            default => Response::text((string) $request->getBody()),
        });

        return 'http' . substr($this->address, \strlen('tcp'));
    }
}

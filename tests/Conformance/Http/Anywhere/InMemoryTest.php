<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Http\Anywhere;

use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use Psr\Http\Message\ServerRequestInterface;
use Spindle\Http\Response;
use Spindle\Http\Testing\Client;
use Spindle\Internal\OutputBuffers;
use Spindle\Tests\Async;
use Spindle\Tests\LeavesNothing;
use Spindle\Tests\Processes;

use function Amp\delay;

final class InMemoryTest extends AppContract
{
    use LeavesNothing;

    public function testWhatHandlersThrewIsKept(): void
    {
        $client = new Client(self::APP);

        $client->get('/throws');
        $client->get('/refuses');

        self::assertSame(
            ['a secret'],
            array_map(static fn(\Throwable $failure): string => $failure->getMessage(), $client->failures()),
        );
    }

    public function testAWaitWithinABufferWithACallbackIsRefusedAsInServe(): void
    {
        $client = new Client(static function (ServerRequestInterface $request): Response {
            ob_start(static fn(string $bytes): string => strtoupper($bytes));
            try {
                echo 'page';
                $request->getRequestTarget() === '/waits' ? delay(0) : null;

                return Response::text((string) ob_get_contents());
            } finally {
                ob_end_clean();
            }
        });

        self::assertSame('page', (string) $client->get('/')->getBody());
        self::assertSame(500, $client->get('/waits')->getStatusCode());
        self::assertInstanceOf(\LogicException::class, $client->failures()[0]);
        self::assertStringContainsString('use_yield of Twig', $client->failures()[0]->getMessage());
    }

    public function testConcurrentRequestsHaveTheirOwnOutputBuffers(): void
    {
        $client = new Client(static function (ServerRequestInterface $request): Response {
            ob_start();
            echo "<{$request->getRequestTarget()}>";
            delay(0);
            echo "</{$request->getRequestTarget()}>";

            return Response::text((string) ob_get_clean());
        });
        $first = Async::run(static fn(): string => (string) $client->get('/1')->getBody());
        $second = Async::run(static fn(): string => (string) $client->get('/2')->getBody());

        self::assertSame(['</1><//1>', '</2><//2>'], [$first->await(), $second->await()]);
        self::assertNull(OutputBuffers::$sharedLevel);
    }

    #[RequiresPhpExtension('FFI')]
    public function testAProgramThatAHandlerHasStartedDoesNotInheritTheConnection(): void
    {
        $client = new Client(static fn(): Response => Response::text(implode(' ', Processes::inheritedSockets())));
        $before = implode(' ', Processes::inheritedSockets());

        self::assertSame($before, (string) $client->get('/')->getBody());
    }

    protected function ask(string $method, string $target, array $headers = [], string $body = ''): Response
    {
        return (new Client(self::APP))->request($method, $target, $headers, $body);
    }
}

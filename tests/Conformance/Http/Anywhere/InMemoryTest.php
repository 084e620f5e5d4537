<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Http\Anywhere;

use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use Spindle\Http\Response;
use Spindle\Http\Testing\TestClient;
use Spindle\Tests\LeavesNothing;
use Spindle\Tests\Processes;

final class InMemoryTest extends AppContract
{
    use LeavesNothing;

    public function testWhatHandlersThrewIsKept(): void
    {
        $client = new TestClient(self::APP);

        $client->get('/throws');
        $client->get('/refuses');

        self::assertSame(
            ['a secret'],
            array_map(static fn(\Throwable $failure): string => $failure->getMessage(), $client->failures()),
        );
    }

    #[RequiresPhpExtension('FFI')]
    public function testAProgramThatAHandlerHasStartedDoesNotInheritTheConnection(): void
    {
        $client = new TestClient(static fn(): Response => Response::text(implode(' ', Processes::inheritedSockets())));
        $before = implode(' ', Processes::inheritedSockets());

        self::assertSame($before, (string) $client->get('/')->getBody());
    }

    protected function ask(string $method, string $target, array $headers = [], string $body = ''): Response
    {
        return (new TestClient(self::APP))->request($method, $target, $headers, $body);
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Middleware;

use Nyholm\Psr7\ServerRequest;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Http\Middleware\RequestId;

final class RequestIdTest extends TestCase
{
    public function testHandlerAndClientGetTheSameId(): void
    {
        $handler = new Handler();
        $id = (new RequestId())->process(new ServerRequest('GET', '/'), $handler)->getHeaderLine('X-Request-Id');

        self::assertMatchesRegularExpression('/^[0-9a-f]{32}$/D', $id);
        self::assertSame($id, $handler->got()->getAttribute('request-id'));
    }

    public function testNoIdIsGivenTwice(): void
    {
        $ids = new RequestId();
        $given = [];
        for ($i = 0; $i < 1000; ++$i) {
            $given[$ids->process(new ServerRequest('GET', '/'), new Handler())->getHeaderLine('X-Request-Id')] = true;
        }

        self::assertCount(1000, $given);
    }

    public function testIncomingRequestIdsAreKeptOnlyIfConfigured(): void
    {
        self::assertNotSame('a-1', self::idOf(new RequestId(), 'a-1'));
        self::assertSame('a-1', self::idOf(RequestId::keepingIncoming(), 'a-1'));
        self::assertSame('a', self::idOf(RequestId::keepingIncoming(), 'a'));
        self::assertSame(
            str_repeat('Az0._-9', 18),
            self::idOf(RequestId::keepingIncoming(), str_repeat('Az0._-9', 18)),
        );
    }

    /** @return iterable<string, array{string|list<string>}> */
    public static function strange(): iterable
    {
        yield 'empty' => [''];
        yield 'too long' => [str_repeat('a', 129)];
        yield 'a blank' => ['a b'];
        yield 'a quote' => ['a"b'];
        yield 'a tab' => ["a\tb"];
        yield 'markup' => ['<script>'];
        yield 'beyond ASCII' => ['é'];
        yield 'two fields' => [['a', 'b']];
    }

    /** @param string|list<string> $incoming */
    #[DataProvider('strange')]
    public function testAnIdThatMightDoHarmIsReplaced(string|array $incoming): void
    {
        self::assertMatchesRegularExpression('/^[0-9a-f]{32}$/D', self::idOf(RequestId::keepingIncoming(), $incoming));
    }

    /** @param string|list<string> $incoming */
    private static function idOf(RequestId $ids, string|array $incoming): string
    {
        $handler = new Handler();
        $response = $ids->process(new ServerRequest('GET', '/', ['x-request-id' => $incoming]), $handler);
        self::assertSame([$handler->got()->getAttribute('request-id')], $response->getHeader('X-Request-Id'));

        return $response->getHeaderLine('X-Request-Id');
    }
}

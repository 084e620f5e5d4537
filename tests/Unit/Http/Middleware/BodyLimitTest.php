<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Middleware;

use Nyholm\Psr7\ServerRequest;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Psr\Http\Message\StreamInterface;
use Spindle\Http\HttpException;
use Spindle\Http\Internal\BodyLimited;
use Spindle\Http\Internal\Message\ReadOnlyStream;
use Spindle\Http\Middleware\BodyLimit;

final class BodyLimitTest extends TestCase
{
    /** @return iterable<string, array{string}> */
    public static function small(): iterable
    {
        yield 'as large as may be' => ['100'];
        yield 'zeros before it' => ['000000000000000000000100'];
        yield 'none' => ['0'];
        yield 'no length' => [''];
        yield 'no number' => ['1e9'];
    }

    #[DataProvider('small')]
    public function testABodyThatMayBeSmallEnoughIsLimited(string $length): void
    {
        $handler = new Handler();
        $body = self::body();
        (new BodyLimit(100))->process(self::request($length, $body), $handler);

        self::assertSame([100], $body->limits);
        self::assertSame($body, $handler->got()->getBody());
    }

    /** @return iterable<string, array{string}> */
    public static function large(): iterable
    {
        yield 'one byte more' => ['101'];
        yield 'zeros before it' => ['000101'];
        yield 'more than a number can be' => ['99999999999999999999999'];
        yield 'more than a number can be, wrapped around' => ['18446744073709551617'];
    }

    #[DataProvider('large')]
    public function testABodyThatIsLargerByItsLengthIsRefusedBeforeTheHandler(string $length): void
    {
        $handler = new Handler();
        $body = self::body();
        try {
            (new BodyLimit(100))->process(self::request($length, $body), $handler);
            self::fail('It was let through');
        } catch (HttpException $refusal) {
            self::assertSame(413, $refusal->status);
        }

        self::assertNull($handler->request);
        self::assertSame([], $body->limits);
    }

    public function testABodyWhoseSizeIsKnownIsJudgedByIt(): void
    {
        $limit = new BodyLimit(3);
        $limit->process(new ServerRequest('POST', '/', [], 'abc'), new Handler());

        $this->expectExceptionObject(new HttpException(413, 'The body is larger than 3 bytes'));
        $limit->process(new ServerRequest('POST', '/', [], 'abcd'), new Handler());
    }

    public function testNoBodyAtAllCanBeAskedFor(): void
    {
        (new BodyLimit(0))->process(new ServerRequest('POST', '/'), new Handler());

        $this->expectExceptionObject(new HttpException(413, 'The body is larger than 0 bytes'));
        (new BodyLimit(0))->process(new ServerRequest('POST', '/', [], 'a'), new Handler());
    }

    public function testALimitBelowZeroIsNone(): void
    {
        $this->expectException(\ValueError::class);
        new BodyLimit(-1);
    }

    private static function request(string $length, StreamInterface $body): ServerRequest
    {
        return new ServerRequest('POST', '/', $length === '' ? [] : ['Content-Length' => $length], $body);
    }

    /** @return StreamInterface&BodyLimited&object{limits: list<int>} */
    private static function body(): object
    {
        return new class implements StreamInterface, BodyLimited {
            use ReadOnlyStream;

            /** @var list<int> */
            public array $limits = [];

            public function limit(int $bytes): void
            {
                $this->limits[] = $bytes;
            }

            public function read(int $length): string
            {
                throw new \LogicException('Nobody was to read');
            }

            public function eof(): bool
            {
                return false;
            }

            public function tell(): int
            {
                return 0;
            }

            public function close(): void {}
        };
    }
}

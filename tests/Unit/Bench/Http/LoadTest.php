<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Bench\Http;

use PHPUnit\Framework\TestCase;
use Spindle\Bench\Http\Load;
use Spindle\Bench\Http\Work;

final class LoadTest extends TestCase
{
    public function testEachRequestHasItsOwnNumberInUrlAndCookie(): void
    {
        $script = (new Load(Work::Text, 50))->script('127.0.0.1:8080');

        self::assertMatchesRegularExpression('/^local n = \d{9}$/m', $script);
        self::assertStringContainsString(
            'n = n + 1 return "GET /text/" .. n .. "?q=" .. n .. " HTTP/1.1\r\nHost: 127.0.0.1:8080'
                . '\r\nCookie: id=" .. n .. "\r\n\r\n" end',
            $script,
        );
    }

    public function testIdenticalRequestsHaveTheSameNumber(): void
    {
        $script = (new Load(Work::Text, 50, isIdentical: true))->script('127.0.0.1:8080');

        self::assertMatchesRegularExpression(
            '~^local same = "GET /text/(\d{9})\?q=\1 HTTP/1.1\\\\r\\\\nHost: 127.0.0.1:8080'
                . '\\\\r\\\\nCookie: id=\1\\\\r\\\\n\\\\r\\\\n"$~m',
            $script,
        );
        self::assertStringNotContainsString('n + 1', $script);
    }

    public function testEachBodyHasItsOwnNumberAndTheLengthThatIsAnnounced(): void
    {
        $request = str_replace(Work::NUMBER, (string) Work::FIRST_NUMBER, Work::Echo->request('127.0.0.1:8080'));
        [$head, $body] = explode("\r\n\r\n", $request, 2);

        self::assertStringContainsString("\r\nContent-Length: 1024", $head);
        self::assertSame([1024, Work::Echo->answer(Work::FIRST_NUMBER)], [\strlen($body), $body]);
        self::assertStringContainsString(
            '\r\n\r\n" .. n .. "xxx',
            (new Load(Work::Echo, 50))->script('127.0.0.1:8080'),
        );
    }

    public function testAMarkIsWrittenAfterSoManyRequests(): void
    {
        $mark = 'if n % 1000 == 0 then io.write("mark\n") io.flush() end';

        self::assertStringContainsString($mark, (new Load(Work::Text, 50, mark: 1_000))->script('127.0.0.1:8080'));
        self::assertStringNotContainsString('io.flush', (new Load(Work::Text, 50))->script('127.0.0.1:8080'));
    }
}

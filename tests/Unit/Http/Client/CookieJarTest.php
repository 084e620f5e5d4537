<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Client;

use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Spindle\Http\Client\CookieJar;

final class CookieJarTest extends TestCase
{
    #[TestWith(['a=1', 'http://h.test/x', 'a=1'])]
    #[TestWith(['a=1', 'http://sub.h.test/x', null])]
    #[TestWith(['a=1; Domain=h.test', 'http://sub.h.test/', 'a=1'])]
    #[TestWith(['a=1; Domain=.h.test', 'http://sub.h.test/', 'a=1'])]
    #[TestWith(['a=1; Domain=other.test', 'http://other.test/', null])]
    #[TestWith(['a=1; Domain=test', 'http://h.test/', null])]
    #[TestWith(['a=1; Path=/p', 'http://h.test/p/q', 'a=1'])]
    #[TestWith(['a=1; Path=/p', 'http://h.test/pq', null])]
    #[TestWith(['a=1; Secure', 'http://h.test/', null])]
    #[TestWith(['a=1; Max-Age=0', 'http://h.test/', null])]
    #[TestWith(['a=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT', 'http://h.test/', null])]
    #[TestWith(['a=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Max-Age=60', 'http://h.test/', 'a=1'])]
    #[TestWith(['=1', 'http://h.test/', null])]
    #[TestWith(["a=1\r\nX: y", 'http://h.test/', null])]
    #[TestWith(['a=x=y z', 'http://h.test/', 'a=x=y z'])]
    public function testACookieIsSentWhereItBelongs(string $cookie, string $url, ?string $expected): void
    {
        $jar = new CookieJar();
        $jar->store('http://h.test/dir', [$cookie]);

        self::assertSame($expected, $jar->header($url));
    }

    public function testASecureCookieNeedsTls(): void
    {
        $jar = new CookieJar();
        $jar->store('https://h.test/', ['a=1; Secure']);

        self::assertSame('a=1', $jar->header('https://h.test/'));
        self::assertNull($jar->header('http://h.test/'));
    }

    public function testATopLevelDomainWithATrailingDotIsNoDomainForCookies(): void
    {
        $jar = new CookieJar();
        $jar->store('http://evil.test./', ['a=1; Domain=test.']);

        self::assertNull($jar->header('http://bank.test./'));
    }

    #[TestWith(['a=evil'])]
    #[TestWith(['a=evil; Max-Age=0'])]
    #[TestWith(['a=evil; Path=/account'])]
    #[TestWith(['a=evil; Domain=h.test'])]
    public function testASecureCookieIsNotHiddenByOneThatCameWithoutTls(string $cookie): void
    {
        $jar = new CookieJar();
        $jar->store('https://www.h.test/', ['a=1; Secure']);
        $jar->store('http://www.h.test/', [$cookie, 'b=2']);

        self::assertSame('a=1; b=2', $jar->header('https://www.h.test/account'));
    }

    public function testACookieReplacesThatOfTheSameNameAndPath(): void
    {
        $jar = new CookieJar();
        $jar->store('http://h.test/', ['a=1; Path=/', 'a=2; Path=/', 'a=3; Path=/deep', 'b=4; Path=/']);

        self::assertSame('a=3; a=2; b=4', $jar->header('http://h.test/deep'));
        $jar->store('http://h.test/', ['a=; Path=/; Max-Age=0']);
        self::assertSame('b=4', $jar->header('http://h.test/'));
        self::assertCount(2, $jar);
    }

    public function testTheDefaultPathIsTheFolderOfTheRequest(): void
    {
        $jar = new CookieJar();
        $jar->store('http://h.test/folder/page?q=/x', ['a=1']);

        self::assertSame('a=1', $jar->header('http://h.test/folder/other'));
        self::assertNull($jar->header('http://h.test/'));
    }

    public function testAJarIsBounded(): void
    {
        $jar = new CookieJar();
        for ($i = 0; $i < 3100; ++$i) {
            $jar->store('http://h.test/', ["c{$i}=1"]);
        }

        self::assertCount(3000, $jar);
        $jar->store('http://h.test/', ['long=' . str_repeat('x', 5000)]);
        self::assertStringNotContainsString('long=', (string) $jar->header('http://h.test/'));
    }
}

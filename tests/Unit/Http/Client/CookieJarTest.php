<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Client;

use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Spindle\Http\Client\CookieJar;
use Spindle\Tests\Eventually;

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
    #[TestWith(['a=1; Max-Age=0; Max-Age=', 'http://h.test/', null])]
    #[TestWith(['a=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Expires=soon', 'http://h.test/', null])]
    #[TestWith(['=1', 'http://h.test/', null])]
    #[TestWith(['a', 'http://h.test/', null])]
    #[TestWith(['a=1; Path=/p//', 'http://h.test/p/q', null])]
    #[TestWith(['a=1; Path=/p/', 'http://h.test/p/q', 'a=1'])]
    #[TestWith(["a=1\r\nX: y", 'http://h.test/', null])]
    #[TestWith(['a=x=y z', 'http://h.test/', 'a=x=y z'])]
    public function testACookieIsSentWhereItBelongs(string $cookie, string $url, ?string $expected): void
    {
        $jar = new CookieJar();
        $jar->store('http://h.test/dir', [$cookie]);

        self::assertSame($expected, $jar->header($url));
    }

    public function testASerializedJarKeepsItsCookies(): void
    {
        $jar = new CookieJar();
        $jar->store('https://h.test/', ['a=1; Secure', 'b=2; Domain=h.test', 'c=3; Path=/p; Max-Age=60']);
        $restored = unserialize(serialize($jar));

        self::assertInstanceOf(CookieJar::class, $restored);
        foreach (['https://h.test/p', 'http://h.test/', 'https://sub.h.test/'] as $url) {
            self::assertSame($jar->header($url), $restored->header($url));
        }
        self::assertSame('c=3; a=1; b=2', $restored->header('https://h.test/p'));
        $restored->store('https://h.test/', ['a=4; Secure']);
        $restored->store('https://h.test/', ['d=5', 'b=6; Domain=h.test']);
        self::assertSame('a=4; b=6; d=5', $restored->header('https://h.test/'));
    }

    public function testADateWithAWrongWeekdayDeletesACookie(): void
    {
        $yesterday = time() - 86_400;
        $date = gmdate('D', $yesterday + 3 * 86_400) . gmdate(', d M Y H:i:s', $yesterday) . ' GMT';
        $jar = new CookieJar();
        $jar->store('http://h.test/', ['a=1', "a=2; Expires={$date}"]);

        self::assertNull($jar->header('http://h.test/'));
    }

    public function testADateWithoutATimeIsNoDate(): void
    {
        $jar = new CookieJar();
        $jar->store('http://h.test/', ['a=1; Expires=-1', 'b=2; Expires=yesterday']);

        self::assertSame('a=1; b=2', $jar->header('http://h.test/'));
    }

    public function testADateWithoutAZoneIsInUtc(): void
    {
        $zone = date_default_timezone_get();
        date_default_timezone_set('Pacific/Kiritimati');
        try {
            $jar = new CookieJar();
            $jar->store('http://h.test/', ['a=1; Expires=' . gmdate('D, d M Y H:i:s', time() + 3600)]);

            self::assertSame('a=1', $jar->header('http://h.test/'));
        } finally {
            date_default_timezone_set($zone);
        }
    }

    public function testASecureCookieNeedsTls(): void
    {
        $jar = new CookieJar();
        $jar->store('https://h.test/', ['a=1; Secure']);

        self::assertSame('a=1', $jar->header('https://h.test/'));
        self::assertNull($jar->header('http://h.test/'));
    }

    public function testACookieOfATopLevelDomainIsNotSentToOtherHosts(): void
    {
        $jar = new CookieJar();
        $jar->store('http://test/', ['a=1; Domain=test']);

        self::assertSame([null, 'a=1'], [$jar->header('http://h.test/'), $jar->header('http://test/')]);
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

    public function testAReplacedCookieKeepsItsPlaceUnlessItWasDeleted(): void
    {
        $jar = new CookieJar();
        $jar->store('http://h.test/', ['a=1', 'b=2', 'a=3']);
        self::assertSame('a=3; b=2', $jar->header('http://h.test/'));

        $jar->store('http://h.test/', ['a=; Max-Age=0', 'a=4']);
        self::assertSame('b=2; a=4', $jar->header('http://h.test/'));
    }

    public function testTheDefaultPathIsTheFolderOfTheRequest(): void
    {
        $jar = new CookieJar();
        $jar->store('http://h.test/folder/page?q=/x', ['a=1']);

        self::assertSame('a=1', $jar->header('http://h.test/folder/other'));
        self::assertNull($jar->header('http://h.test/'));
    }

    #[TestWith(['__Host-a=1; Secure; Path=/', true])]
    #[TestWith(['__Host-a=1; Path=/', false])]
    #[TestWith(['__Host-a=1; Secure', false])]
    #[TestWith(['__Host-a=1; Secure; Path=/x', false])]
    #[TestWith(['__Host-a=1; Secure; Path=/; Domain=www.h.test', false])]
    #[TestWith(['__hOST-a=1; Path=/', false])]
    #[TestWith(['__Secure-a=1; Secure; Domain=h.test', true])]
    #[TestWith(['__Secure-a=1', false])]
    #[TestWith(['__SECURE-a=1; Path=/', false])]
    public function testAPrefixOfANameKeepsItsPromise(string $cookie, bool $isStored): void
    {
        $jar = new CookieJar();
        $jar->store('https://www.h.test/', [$cookie]);

        self::assertCount($isStored ? 1 : 0, $jar);
    }

    public function testAPrefixNeedsTls(): void
    {
        $jar = new CookieJar();
        $jar->store('http://h.test/', ['__Host-a=1; Secure; Path=/', '__Secure-a=1; Secure']);

        self::assertCount(0, $jar);
    }

    #[TestWith(['a=1; Max-Age=99999999999999999999', 'a=1'])]
    #[TestWith(['a=1; Max-Age=99999999999999999999; Expires=Thu, 01 Jan 1970 00:00:00 GMT', 'a=1'])]
    #[TestWith(['a=1; Max-Age=-99999999999999999999', null])]
    #[TestWith(['a=1; Max-Age=9223372036854775807', 'a=1'])]
    #[TestWith(['a=1; Max-Age=-9223372036854775808', null])]
    #[TestWith(['a=1; Max-Age=-1', null])]
    #[TestWith(['a=1; Max-Age=-', 'a=1'])]
    #[TestWith(['a=1; Max-Age=1e3; Expires=Thu, 01 Jan 1970 00:00:00 GMT', null])]
    public function testALargeMaxAgeIsNotIgnored(string $cookie, ?string $expected): void
    {
        $jar = new CookieJar();
        $jar->store('http://h.test/', [$cookie]);

        self::assertSame($expected, $jar->header('http://h.test/'));
    }

    public function testNameAndValueAreBounded(): void
    {
        $jar = new CookieJar();
        $jar->store('http://h.test/', ['a=' . str_repeat('x', 4096), 'bb=' . str_repeat('x', 4095)]);
        self::assertCount(0, $jar);

        $jar->store('http://h.test/', ['a=' . str_repeat('x', 4095) . '; Path=/; Comment=' . str_repeat('x', 1000)]);
        self::assertSame('a=' . str_repeat('x', 4095), $jar->header('http://h.test/'));
    }

    public function testALongAttributeIsIgnored(): void
    {
        $jar = new CookieJar();
        $jar->store('http://h.test/dir/', [
            'a=1; Path=/' . str_repeat('x', 1024),
            'b=2; Path=/' . str_repeat('x', 1023),
        ]);

        self::assertSame('a=1', $jar->header('http://h.test/dir/'));
        self::assertSame('b=2', $jar->header('http://h.test/' . str_repeat('x', 1023)));
    }

    public function testADomainHasAtMostFiftyCookies(): void
    {
        $jar = new CookieJar();
        $jar->store('http://other.test/', ['a=1']);
        for ($i = 1; $i <= 52; ++$i) {
            $jar->store('http://h.test/', ["c{$i}=1; Path=/{$i}"]);
        }
        $jar->store('http://h.test/', ['c3=2; Path=/3']);

        self::assertCount(51, $jar);
        self::assertSame('a=1', $jar->header('http://other.test/'));
        self::assertNull($jar->header('http://h.test/2'));
        self::assertSame('c3=2', $jar->header('http://h.test/3'));
        $jar->store('http://h.test/', ['d=1; Path=/']);
        self::assertSame('d=1', $jar->header('http://h.test/4'));
    }

    public function testExpiredCookiesAreDroppedFirst(): void
    {
        $jar = new CookieJar();
        $jar->store('http://h.test/', ['old=1; Path=/old']);
        for ($i = 1; $i <= 49; ++$i) {
            $jar->store('http://h.test/', ["c{$i}=1; Max-Age=1"]);
        }
        $other = new CookieJar();
        $other->store('http://h.test/', ['a=1; Max-Age=1']);
        Eventually::holds(static fn(): bool => $other->header('http://h.test/') === null, 'the cookies expire');
        $jar->store('http://h.test/', ['new=1']);

        self::assertSame('old=1; new=1', $jar->header('http://h.test/old'));
    }

    public function testInsecureCookiesDoNotReplaceSecureOnes(): void
    {
        $jar = new CookieJar();
        $jar->store('https://h.test/', ['session=1; Secure']);
        for ($i = 0; $i < 60; ++$i) {
            $jar->store('http://h.test/', ["c{$i}=1"]);
        }

        self::assertCount(50, $jar);
        self::assertStringStartsWith('session=1; ', (string) $jar->header('https://h.test/'));
    }

    public function testAJarIsBounded(): void
    {
        $jar = new CookieJar();
        for ($i = 0; $i < 3100; ++$i) {
            $jar->store('http://h' . intdiv($i, 50) . '.test/', ["c{$i}=1"]);
        }

        self::assertCount(3000, $jar);
        self::assertNull($jar->header('http://h1.test/'));
        self::assertNotNull($jar->header('http://h2.test/'));
    }

    public function testTheCookieHeaderIsBounded(): void
    {
        $jar = new CookieJar();
        foreach (['test.', 'b.test.', 'a.b.test.'] as $domain) {
            for ($i = 0; $i < 50; ++$i) {
                $jar->store('http://x.a.b.test./', ["c{$i}=" . str_repeat('x', 4000) . "; Domain={$domain}"]);
            }
        }
        $header = (string) $jar->header('http://x.a.b.test./');

        self::assertLessThanOrEqual(65_536, \strlen($header));
        self::assertSame(16, substr_count($header, '='));
    }
}

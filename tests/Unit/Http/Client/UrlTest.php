<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Client;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Spindle\Http\Internal\Client\Url;
use Spindle\Tests\Locale;
use Spindle\Tests\OwnDirectory;

final class UrlTest extends TestCase
{
    use OwnDirectory;

    #[TestWith(['http://h', 'http', 'h', 80, '/'])]
    #[TestWith(['HTTPS://Host:444/a?b#c', 'https', 'host', 444, '/a?b'])]
    #[TestWith(['http://h?x=1', 'http', 'h', 80, '/?x=1'])]
    #[TestWith(['http://u:p@h/a', 'http', 'h', 80, '/a'])]
    #[TestWith(['http://[::1]:8080/a', 'http', '::1', 8080, '/a'])]
    #[TestWith(["http://h/a b\r\nX: y", 'http', 'h', 80, '/a%20b%0D%0AX:%20y'])]
    #[TestWith(['http://h/%41?ä', 'http', 'h', 80, '/%41?%C3%A4'])]
    public function testAUrlIsSplit(string $text, string $scheme, string $host, int $port, string $target): void
    {
        $url = Url::parse($text);

        self::assertNotNull($url);
        self::assertSame([$scheme, $host, $port, $target], [$url->scheme, $url->host, $url->port, $url->target]);
    }

    #[TestWith([''])]
    #[TestWith(['h'])]
    #[TestWith(['/path'])]
    #[TestWith(['ftp://h/'])]
    #[TestWith(['http://'])]
    #[TestWith(['http:///a'])]
    #[TestWith(['http://h:0/'])]
    #[TestWith(['http://h:99999/'])]
    #[TestWith(["http://h\r\nX: y/"])]
    #[TestWith(['http://a b/'])]
    #[TestWith(['http://[::1/'])]
    #[TestWith(['http://[gg::1]/'])]
    #[TestWith(['http://a%2fb/'])]
    #[TestWith(['http://a.test\\@b.test/'])]
    #[TestWith(['http://a.test\\b.test/'])]
    public function testAnythingElseIsRefused(string $text): void
    {
        self::assertNull(Url::parse($text));
    }

    #[TestWith(['http://h:99999/a?token=secret', 'The URL "http://h:99999/a" is malformed.'])]
    #[TestWith(['http://user:secret@h:99999/a', 'The URL is malformed.'])]
    #[TestWith(['user:sec?ret@h', 'The URL is malformed.'])]
    #[TestWith(["http://h\xff\r\n", "The URL \"http://h\u{fffd}\\r\\n\" is malformed."])]
    public function testTheRefusalShowsTheUrlWithoutSecrets(string $url, string $expected): void
    {
        $this->expectExceptionObject(new \InvalidArgumentException($expected));
        Url::of($url);
    }

    #[TestWith(['user', 'user:'])]
    #[TestWith(['user:', 'user:'])]
    #[TestWith([':password', ':password'])]
    #[TestWith(['us%3Aer', 'us:er:'])]
    #[TestWith(['user:pass:word', 'user:pass:word'])]
    public function testCredentialsHaveAColonAlsoWithoutAPassword(string $userInfo, string $credentials): void
    {
        $authorization = Url::parse("http://{$userInfo}@h/")?->authorization();

        self::assertSame('Basic ' . base64_encode($credentials), $authorization);
    }

    public function testSecretsAreNotShown(): void
    {
        $url = Url::parse('https://user:pass%20word@h:8443/path?token=secret');

        self::assertNotNull($url);
        self::assertSame('https://h:8443/path', $url->withoutSecrets());
        self::assertSame('Basic ' . base64_encode('user:pass word'), $url->authorization());
        self::assertStringNotContainsString('pass', print_r($url, true));
        self::assertStringNotContainsString('secret', print_r($url, true));
    }

    /** @return iterable<string, array{string, string}> the examples of RFC 3986, 5.4, for http */
    public static function references(): iterable
    {
        foreach ([
            'g' => 'http://a/b/c/g',
            './g' => 'http://a/b/c/g',
            'g/' => 'http://a/b/c/g/',
            '/g' => 'http://a/g',
            '//g' => 'http://g/',
            '?y' => 'http://a/b/c/d;p?y',
            'g?y' => 'http://a/b/c/g?y',
            '#s' => 'http://a/b/c/d;p?q',
            'g#s' => 'http://a/b/c/g',
            ';x' => 'http://a/b/c/;x',
            '' => 'http://a/b/c/d;p?q',
            '.' => 'http://a/b/c/',
            './' => 'http://a/b/c/',
            '..' => 'http://a/b/',
            '../' => 'http://a/b/',
            '../g' => 'http://a/b/g',
            '../..' => 'http://a/',
            '../../g' => 'http://a/g',
            '../../../g' => 'http://a/g',
            '/./g' => 'http://a/g',
            '/../g' => 'http://a/g',
            'g.' => 'http://a/b/c/g.',
            '..g' => 'http://a/b/c/..g',
            './g/.' => 'http://a/b/c/g/',
            'g/./h' => 'http://a/b/c/g/h',
            'g/../h' => 'http://a/b/c/h',
            'g?y/../x' => 'http://a/b/c/g?y/../x',
            'https://other:1/x' => 'https://other:1/x',
            'https://other/x/../y?z/..' => 'https://other/y?z/..',
            '//other/x/./y' => 'http://other/x/y',
        ] as $reference => $expected) {
            yield $reference => [$reference, $expected];
        }
    }

    #[DataProvider('references')]
    public function testAReferenceIsResolved(string $reference, string $expected): void
    {
        self::assertSame($expected, (string) Url::parse('http://a/b/c/d;p?q')?->resolve($reference));
    }

    #[TestWith(['javascript:alert(1)'])]
    #[TestWith(['file:///etc/passwd'])]
    #[TestWith(['mailto:a@b'])]
    public function testAReferenceToAnotherSchemeIsRefused(string $reference): void
    {
        self::assertNull(Url::parse('http://a/')?->resolve($reference));
    }

    public function testTheSchemeOfAReferenceIsFoundInEachLocale(): void
    {
        $resolve = static fn(): array => [Url::parse('http://a/')?->resolve('MAILTO:a@b')];
        $resolved = Locale::withDotlessI($this->path(), $resolve);
        $resolved ?? self::markTestSkipped('The locale can not be loaded');

        self::assertSame([null], $resolved);
    }

    /** In the older form of such names, the host would be fass.de, which may belong to someone else. */
    #[RequiresPhpExtension('intl')]
    public function testAnInternationalNameIsThatOfBrowsers(): void
    {
        self::assertSame('xn--fa-hia.de', Url::parse('http://faß.de/')?->host);
    }
}

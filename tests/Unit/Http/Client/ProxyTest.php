<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Client;

use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Spindle\Http\Client\ConnectFailedException;
use Spindle\Http\Client\Proxy;
use Spindle\Http\Internal\Client\Call;
use Spindle\Http\Internal\Client\OutgoingRequest;
use Spindle\Http\Internal\Client\Url;

final class ProxyTest extends TestCase
{
    private const VARIABLES = ['http_proxy', 'https_proxy', 'all_proxy', 'no_proxy'];

    /** @var array<string, string|false> */
    private array $environment = [];

    protected function setUp(): void
    {
        foreach (self::VARIABLES as $name) {
            foreach ([$name, strtoupper($name)] as $variable) {
                $this->environment[$variable] = getenv($variable);
                putenv($variable);
            }
        }
    }

    protected function tearDown(): void
    {
        foreach ($this->environment as $variable => $value) {
            putenv($value === false ? $variable : "{$variable}={$value}");
        }
    }

    #[TestWith(['http://h.test/', 'http://plain:3128'])]
    #[TestWith(['https://h.test/', 'http://secure:3129'])]
    #[TestWith(['http://internal.test/', null])]
    #[TestWith(['http://sub.internal.test/', null])]
    #[TestWith(['http://notinternal.test/', 'http://plain:3128'])]
    #[TestWith(['http://127.0.0.1/', null])]
    #[TestWith(['http://port.test:8080/', null])]
    #[TestWith(['http://[::1]/', null])]
    #[TestWith(['http://[::2]/', null])]
    #[TestWith(['http://[::3]:81/', null])]
    #[TestWith(['http://[::3]/', 'http://plain:3128'])]
    #[TestWith(['http://port.test/', 'http://plain:3128'])]
    public function testTheEnvironmentNamesProxiesAndExceptions(string $url, ?string $expected): void
    {
        putenv('http_proxy=http://plain:3128');
        putenv('HTTPS_PROXY=http://user:pw@secure:3129');
        putenv('NO_PROXY=.internal.test, 127.0.0.1,port.test:8080,::1,[::2],[::3]:81');

        self::assertSame($expected, Proxy::fromEnvironment()->for(self::request($url))?->origin());
    }

    #[TestWith(['*', 'http://h.test/', true])]
    #[TestWith(['a.test,*', 'http://h.test/', true])]
    #[TestWith(['*', 'http://[::1]/', true])]
    #[TestWith(['*:81', 'http://h.test:81/', true])]
    #[TestWith(['*:81', 'http://h.test/', false])]
    #[TestWith(['', 'http://h.test/', false])]
    #[TestWith(['.', 'http://h.test/', false])]
    #[TestWith(['*.', 'http://h.test/', false])]
    #[TestWith(['.:80', 'http://h.test/', false])]
    #[TestWith(['*.h.test', 'http://sub.h.test/', true])]
    #[TestWith(['*.h.test', 'http://h.test/', true])]
    #[TestWith(['0.0.1', 'http://10.0.0.1/', false])]
    #[TestWith(['.0.0.1', 'http://10.0.0.1/', false])]
    #[TestWith(['1', 'http://10.0.0.1/', false])]
    #[TestWith(['10.0.0.1', 'http://10.0.0.1/', true])]
    #[TestWith(['10.0.0.1', 'http://210.0.0.1/', false])]
    #[TestWith(['10.0.0.1', 'http://sub.10.0.0.1/', false])]
    #[TestWith(['10.0.0.0/8', 'http://10.9.8.7/', true])]
    #[TestWith(['10.0.0.0/8', 'http://11.0.0.1/', false])]
    #[TestWith(['10.0.0.0/8', 'http://h.test/', false])]
    #[TestWith(['10.0.0.0/8:81', 'http://10.9.8.7/', false])]
    #[TestWith(['10.0.0.0/8:81', 'http://10.9.8.7:81/', true])]
    #[TestWith(['10.0.0.0/33', 'http://10.0.0.0/', false])]
    #[TestWith(['0.0.0.0/0', 'http://1.2.3.4/', true])]
    #[TestWith(['0.0.0.0/0', 'http://[::1]/', false])]
    #[TestWith(['192.168.1.0/25', 'http://192.168.1.127/', true])]
    #[TestWith(['192.168.1.0/25', 'http://192.168.1.128/', false])]
    #[TestWith(['fd00::/8', 'http://[fd12:3456::1]/', true])]
    #[TestWith(['fd00::/8', 'http://[fe80::1]/', false])]
    #[TestWith(['[fd00::/8]:81', 'http://[fd12::1]:81/', true])]
    #[TestWith(['0:0::1', 'http://[::1]/', true])]
    #[TestWith(['H.Test', 'http://h.test/', true])]
    #[TestWith(['h.test', 'http://H.TEST/', true])]
    #[TestWith(['h.test.', 'http://h.test/', true])]
    #[TestWith(['h.test', 'http://h.test./', true])]
    #[TestWith(['.h.test.', 'http://sub.h.test./', true])]
    #[TestWith(['h.test.:81', 'http://h.test:81/', true])]
    #[TestWith(['127.0.0.1.', 'http://127.0.0.1/', true])]
    #[TestWith(['127.0.0.1', 'http://127.0.0.1./', true])]
    #[TestWith(['127.0.0.1.:81', 'http://127.0.0.1.:81/', true])]
    #[TestWith(['127.0.0.1.', 'http://sub.127.0.0.1/', false])]
    #[TestWith(['h.test:', 'http://h.test:81/', true])]
    #[TestWith(['h.test:443', 'https://h.test/', true])]
    #[TestWith(['h.test:port', 'http://h.test/', false])]
    #[TestWith([" a.test\t h.test , b.test ", 'http://h.test/', true])]
    #[TestWith([' , ', 'http://h.test/', false])]
    public function testAnEntryOfNoProxyMatchesAsDocumented(string $noProxy, string $url, bool $isDirect): void
    {
        $variables = ['all_proxy' => 'http://proxy:3128', 'no_proxy' => $noProxy];

        self::assertSame($isDirect, Proxy::fromEnvironment($variables)->for(self::request($url)) === null);
        $given = new Proxy('http://proxy:3128', 'http://proxy:3128', [$noProxy]);
        self::assertSame($isDirect, $given->for(self::request($url)) === null);
    }

    #[RequiresPhpExtension('intl')]
    #[TestWith(['bücher.test', 'http://bücher.test/', true])]
    #[TestWith(['BÜCHER.test.:81', 'http://bücher.test:81/', true])]
    #[TestWith(['*.bücher.test', 'http://sub.xn--bcher-kva.test./', true])]
    #[TestWith(['xn--bcher-kva.test', 'http://Bücher.test/', true])]
    #[TestWith(['bücher。test', 'http://bücher.test/', true])]
    #[TestWith(['bücher.test', 'http://bucher.test/', false])]
    #[TestWith(["\xff.test", 'http://bücher.test/', false])]
    public function testNamesInUnicodeMatchTheirAsciiForm(string $noProxy, string $url, bool $isDirect): void
    {
        $this->testAnEntryOfNoProxyMatchesAsDocumented($noProxy, $url, $isDirect);
    }

    public function testAProxyNeedsNoScheme(): void
    {
        $proxy = new Proxy('me:pw@user-host:3128');

        self::assertSame('http://user-host:3128', $proxy->for(self::request('http://h.test/'))?->origin());
        $this->expectException(\ValueError::class);
        new Proxy('proxy:port');
    }

    public function testThereIsNoProxyWithoutVariables(): void
    {
        self::assertNull(Proxy::fromEnvironment()->for(self::request('https://h.test/')));
        self::assertNull(Proxy::fromEnvironment(['https_proxy' => ''])->for(self::request('https://h.test/')));
    }

    #[TestWith(['socks5://proxy:1080'])]
    #[TestWith(['socks5h://proxy:1080'])]
    #[TestWith(['https://proxy:3128'])]
    #[TestWith(['proxy:port'])]
    public function testAProxyThatIsNotSupportedFailsOnlyTheRequestsThatWouldUseIt(string $value): void
    {
        $proxy = Proxy::fromEnvironment([
            'ALL_PROXY' => $value,
            'http_proxy' => 'http://plain:3128',
            'no_proxy' => 'direct.test',
        ]);

        self::assertSame('http://plain:3128', $proxy->for(self::request('http://h.test/'))?->origin());
        self::assertNull($proxy->for(self::request('https://direct.test/')));
        $this->expectException(ConnectFailedException::class);
        $this->expectExceptionMessage('GET https://h.test/ failed: the proxy for https (ALL_PROXY) must be an http://');
        $proxy->for(self::request('https://h.test/'));
    }

    public function testAMalformedUrlIsRefusedAndCredentialsAreNotShown(): void
    {
        self::assertSame(
            ['http' => 'http://h:1/', 'noProxy' => ['a.test', '10.0.0.0/8']],
            (new Proxy('http://user:pw@h:1', noProxy: ['a.test', '10.0.0.0/8']))->__debugInfo(),
        );
        self::assertStringNotContainsString('pw', print_r(new Proxy('http://user:pw@h:1'), true));
        self::assertStringNotContainsString(
            'pw',
            print_r(Proxy::fromEnvironment(['https_proxy' => 'socks5://user:pw@h:1']), true),
        );
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage('The proxy for https must be an http:// URL, such as http://proxy:3128');
        new Proxy(https: 'socks5://h:1');
    }

    private static function request(string $url): OutgoingRequest
    {
        $parsed = Url::parse($url);
        \assert($parsed !== null);

        $failedTotal = 0;

        return new OutgoingRequest('GET', $parsed, [], '', new Call($failedTotal));
    }
}

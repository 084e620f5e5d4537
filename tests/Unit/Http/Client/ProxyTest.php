<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Client;

use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Spindle\Http\Client\Proxy;
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
        $target = Url::parse($url);
        \assert($target !== null);
        $proxy = Proxy::fromEnvironment()->for($target);

        self::assertSame($expected, $proxy?->origin());
    }

    public function testAProxyNeedsNoScheme(): void
    {
        $target = Url::parse('http://h.test/');
        \assert($target !== null);

        self::assertSame('http://user-host:3128', (new Proxy('me:pw@user-host:3128'))->for($target)?->origin());
        $this->expectException(\ValueError::class);
        new Proxy('proxy:port');
    }

    public function testThereIsNoProxyWithoutVariables(): void
    {
        $target = Url::parse('https://h.test/');
        \assert($target !== null);

        self::assertNull(Proxy::fromEnvironment()->for($target));
    }

    public function testAMalformedUrlIsRefusedAndCredentialsAreNotShown(): void
    {
        self::assertStringNotContainsString('pw', print_r(new Proxy('http://user:pw@h:1'), true));
        $this->expectException(\ValueError::class);
        new Proxy('socks5://h:1');
    }
}

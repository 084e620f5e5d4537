<?php

declare(strict_types=1);

namespace Spindle\Http\Client;

use Spindle\Http\Internal\Client\OutgoingRequest;
use Spindle\Http\Internal\Client\ProxyBypass;
use Spindle\Http\Internal\Client\Url;

/**
 * The HTTP proxies of a client. A request to an https:// URL is sent through a tunnel, which the proxy can't read.
 *
 * The client sends a request's own `Proxy-Authorization` header only to a proxy, never to a server. The proxy gets this
 * header only for http:// URLs, and only if the proxy's URL has no user and password.
 *
 * Functions such as var_export() do not show the password. A proxy with a password can't be serialized.
 */
final class Proxy
{
    private const EXPECTED = 'must be an http:// URL, such as http://proxy:3128';

    /**
     * @var array<string, Url|string> proxies by the scheme of the requested URL. If a proxy is not supported, the
     *     value is the name of the variable or option that sets this proxy
     */
    private array $proxies = [];

    /** @var list<ProxyBypass> */
    private readonly array $bypasses;

    /**
     * @param string|null $http proxy for http:// URLs, such as http://user:password@proxy:3128; `http://` is optional
     * @param string|null $https proxy for https:// URLs
     * @param list<string> $noProxy hosts that are reached without a proxy. An entry is a name (which includes its
     *     subdomains), an IP address, a network such as 10.0.0.0/8 or fd00::/8, or "*" for all hosts. A port after a
     *     colon restricts an entry to that port. An address or network does not match a URL with a host name, because
     *     the client does not resolve the name. One string can have several entries, separated by commas or blanks
     *
     * @throws \ValueError when a URL is malformed, or has another scheme than http
     */
    public function __construct(
        #[\SensitiveParameter]
        ?string $http = null,
        #[\SensitiveParameter]
        ?string $https = null,
        array $noProxy = [],
    ) {
        foreach (['http' => $http, 'https' => $https] as $scheme => $url) {
            if ($url !== null) {
                $this->proxies[$scheme] = self::parse($url)
                    ?? throw new \ValueError("The proxy for {$scheme} " . self::EXPECTED);
            }
        }
        $entries = (array) preg_split('/[\s,]++/', implode(',', $noProxy), -1, \PREG_SPLIT_NO_EMPTY);
        $this->bypasses = array_map(static fn(mixed $entry): ProxyBypass => new ProxyBypass((string) $entry), $entries);
    }

    /**
     * Reads the proxies from the environment variables http_proxy, https_proxy, all_proxy and no_proxy, in lower or
     * upper case. HTTP_PROXY is read only on the command line: under CGI, a client can set this variable with the
     * header `Proxy` (CVE-2016-5385).
     *
     * A proxy that is not supported, such as socks5h://proxy, causes no exception here. Instead, each request through
     * this proxy fails with a {@see ConnectFailedException}, whose message names the variable.
     *
     * @param array<mixed>|null $variables values by name; null for the environment of this process
     */
    public static function fromEnvironment(#[\SensitiveParameter] ?array $variables = null): self
    {
        $variables = array_filter($variables ?? getenv(), static fn($value) => \is_string($value) && $value !== '');
        $self = new self(noProxy: [$variables['no_proxy'] ?? $variables['NO_PROXY'] ?? '']);
        $all = ['all_proxy', 'ALL_PROXY'];
        foreach ([
            'http' => ['http_proxy', ...\PHP_SAPI === 'cli' ? ['HTTP_PROXY'] : [], ...$all],
            'https' => ['https_proxy', 'HTTPS_PROXY', ...$all],
        ] as $scheme => $names) {
            foreach ($names as $name) {
                if (isset($variables[$name])) {
                    $self->proxies[$scheme] = self::parse($variables[$name]) ?? $name;
                    break;
                }
            }
        }

        return $self;
    }

    /** @internal Returns a copy whose error messages name an option instead of an environment variable. */
    public function ofOption(string $option): self
    {
        $copy = clone $this;
        foreach ($copy->proxies as $scheme => $proxy) {
            $copy->proxies[$scheme] = \is_string($proxy) ? "the option {$option}" : $proxy;
        }

        return $copy;
    }

    /**
     * @internal Returns the proxy for a request; null for a direct connection.
     *
     * @throws ConnectFailedException when the proxy that a variable or an option sets is not supported
     */
    public function for(OutgoingRequest $request): ?Url
    {
        foreach ($this->bypasses as $bypass) {
            if ($bypass->matches($request->url)) {
                return null;
            }
        }
        $proxy = $this->proxies[$request->url->scheme] ?? null;

        return \is_string($proxy)
            ? throw ConnectFailedException::of(
                $request,
                "the proxy for {$request->url->scheme} ({$proxy}) " . self::EXPECTED,
            )
            : $proxy;
    }

    /** @return array<string, mixed> without credentials */
    public function __debugInfo(): array
    {
        $show = static fn(Url|string $proxy): string => \is_string($proxy) ? $proxy : $proxy->withoutSecrets();

        return array_map($show, $this->proxies) + ['noProxy' => array_column($this->bypasses, 'entry')];
    }

    private static function parse(#[\SensitiveParameter] string $url): ?Url
    {
        $parsed = Url::parse(str_contains($url, '://') ? $url : "http://{$url}");

        return $parsed?->scheme === 'http' ? $parsed : null;
    }
}

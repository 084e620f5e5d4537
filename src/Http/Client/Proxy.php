<?php

declare(strict_types=1);

namespace Spindle\Http\Client;

use Spindle\Http\Internal\Client\Url;

/** The HTTP proxies of a client. Requests for https are sent through a tunnel, so the proxy can't read them. */
final readonly class Proxy
{
    /**
     * @param string|null $http URL of the proxy for http, such as http://user:password@proxy:3128, perhaps without
     *     "http://"; null for none
     * @param string|null $https URL of the proxy for https; null for none
     * @param list<string> $except hosts without a proxy: a name, which includes its subdomains, an IP address, or "*"
     *     for all. A port after a colon restricts an entry to that port
     *
     * @throws \ValueError when a URL is malformed
     */
    public function __construct(
        #[\SensitiveParameter]
        private ?string $http = null,
        #[\SensitiveParameter]
        private ?string $https = null,
        private array $except = [],
    ) {
        foreach ([$http, $https] as $url) {
            if ($url !== null && self::parse($url)?->scheme !== 'http') {
                throw new \ValueError('A proxy must be a URL such as http://proxy:3128');
            }
        }
    }

    /**
     * Returns the proxies that environment variables name: http_proxy, https_proxy, all_proxy and no_proxy, in lower or
     * upper case. HTTP_PROXY counts only on the command line, because a client of a CGI program can set it
     * (CVE-2016-5385).
     *
     * @param array<mixed>|null $variables by name; null for those of this process
     */
    public static function fromEnvironment(#[\SensitiveParameter] ?array $variables = null): self
    {
        $variables ??= getenv();
        $find = static function (string ...$names) use ($variables): ?string {
            foreach ($names as $name) {
                $value = $variables[$name] ?? null;
                if (\is_string($value) && $value !== '') {
                    return $value;
                }
            }

            return null;
        };
        $all = $find('all_proxy', 'ALL_PROXY');

        return new self(
            $find('http_proxy', ...\PHP_SAPI === 'cli' ? ['HTTP_PROXY'] : []) ?? $all,
            $find('https_proxy', 'HTTPS_PROXY') ?? $all,
            explode(',', str_replace(' ', ',', $find('no_proxy', 'NO_PROXY') ?? '')),
        );
    }

    /** @internal Returns the proxy for a URL; null for a direct connection. */
    public function for(Url $url): ?Url
    {
        foreach ($this->except as $entry) {
            if (self::matches($entry, $url)) {
                return null;
            }
        }
        $proxy = $url->scheme === 'https' ? $this->https : $this->http;

        return $proxy === null ? null : self::parse($proxy);
    }

    /** @return array<string, mixed> without credentials */
    public function __debugInfo(): array
    {
        $show = static fn(?string $url): ?string => $url === null ? null : self::parse($url)?->withoutSecrets();

        return ['http' => $show($this->http), 'https' => $show($this->https), 'except' => $this->except];
    }

    /** Returns whether an entry of the hosts without a proxy names the host of a URL. */
    private static function matches(string $entry, Url $url): bool
    {
        if ($entry === '') {
            return false;
        }
        $isIpv6 = filter_var($entry, \FILTER_VALIDATE_IP, \FILTER_FLAG_IPV6) !== false;
        preg_match('/^(?|\[([^\]]*)\]|([^:]*))(?::(.*))?$/s', $isIpv6 ? "[{$entry}]" : $entry, $match);
        [$host, $port] = [strtolower(ltrim($match[1] ?? '', '*.')), $match[2] ?? ''];
        $isSameHost = $host === '' || $url->host === $host || str_ends_with($url->host, ".{$host}");

        return $isSameHost && ($port === '' || (int) $port === $url->port);
    }

    private static function parse(#[\SensitiveParameter] string $url): ?Url
    {
        return Url::parse(str_contains($url, '://') ? $url : "http://{$url}");
    }
}

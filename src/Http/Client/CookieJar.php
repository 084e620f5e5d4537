<?php

declare(strict_types=1);

namespace Spindle\Http\Client;

use Spindle\Http\Internal\Client\Url;

/**
 * Cookies of servers, in memory: RFC 6265. A cookie for a domain without a dot is refused. There is no list of public
 * suffixes, so a jar must not be shared by servers of different owners, such as a.co.uk and b.co.uk.
 *
 * @phpstan-type Cookie array{
 *     name: string,
 *     value: string,
 *     domain: string,
 *     path: string,
 *     isHostOnly: bool,
 *     isSecure: bool,
 *     expires: int,
 * }
 */
final class CookieJar implements \Countable
{
    /** Maximum number of cookies. The oldest one is dropped when there are more. */
    private const MAX_COOKIES = 3000;
    private const MAX_COOKIE_BYTES = 4096;

    /** @var array<string, Cookie> by domain, path and name */
    private array $cookies = [];

    /**
     * Stores cookies that a server has sent.
     *
     * @param string $url of the request
     * @param list<string> $values of its Set-Cookie fields
     */
    public function store(string $url, array $values): void
    {
        $origin = Url::parse($url);
        foreach ($values as $value) {
            if ($origin !== null && \strlen($value) <= self::MAX_COOKIE_BYTES) {
                $this->storeOne($origin, $value);
            }
        }
    }

    /** Returns the value of the Cookie field for a URL; null for none. Longer paths come first: RFC 6265, 5.4. */
    public function header(string $url): ?string
    {
        $target = Url::parse($url);
        $cookies = [];
        foreach ($this->cookies as $key => $cookie) {
            if ($cookie['expires'] <= time()) {
                unset($this->cookies[$key]);
            } elseif ($target !== null && self::matches($cookie, $target)) {
                $cookies[] = $cookie;
            }
        }
        usort($cookies, static fn(array $a, array $b): int => \strlen($b['path']) <=> \strlen($a['path']));

        return $cookies === [] ? null : implode('; ', array_map(
            static fn(array $cookie): string => "{$cookie['name']}={$cookie['value']}",
            $cookies,
        ));
    }

    public function clear(): void
    {
        $this->cookies = [];
    }

    public function count(): int
    {
        return \count($this->cookies);
    }

    /** @return array<string, mixed> without values, which may be secret */
    public function __debugInfo(): array
    {
        return ['names' => array_column($this->cookies, 'name')];
    }

    private function storeOne(Url $origin, string $line): void
    {
        $parts = explode(';', $line);
        [$name, $value] = array_map(trim(...), explode('=', array_shift($parts), 2) + [1 => '']);
        if ($name === '' || preg_match('/[\x00-\x1f\x7f]/', $name . $value) === 1) {
            return;
        }
        $attributes = self::attributes($parts);
        $domain = ltrim(strtolower($attributes['domain'] ?? ''), '.');
        $isHostOnly = $domain === '';
        $domain = $isHostOnly ? $origin->host : $domain;
        $isAllowed = $domain === $origin->host
            || str_contains(rtrim($domain, '.'), '.') && self::isWithin($origin->host, $domain);
        if (!$isAllowed) {
            return;
        }
        $isSecure = isset($attributes['secure']);
        if ($isSecure && $origin->scheme !== 'https') {
            return;
        }
        $path = $attributes['path'] ?? '';
        $path = str_starts_with($path, '/') ? $path : self::defaultPath($origin);
        $cookie = [
            'name' => $name,
            'value' => $value,
            'domain' => $domain,
            'path' => $path,
            'isHostOnly' => $isHostOnly,
            'isSecure' => $isSecure,
            'expires' => self::expiry($attributes),
        ];
        $key = "{$cookie['domain']} {$cookie['path']} {$name}";
        if ($origin->scheme !== 'https' && $this->hidesSecureCookie($cookie)) {
            return;
        }
        unset($this->cookies[$key]);
        if ($cookie['expires'] > time()) {
            $this->cookies[$key] = $cookie;
        }
        if (\count($this->cookies) > self::MAX_COOKIES) {
            array_shift($this->cookies);
        }
    }

    /**
     * @param list<string> $parts
     *
     * @return array<string, string> values by name in lower case
     */
    private static function attributes(array $parts): array
    {
        $attributes = [];
        foreach ($parts as $part) {
            [$name, $value] = explode('=', $part, 2) + [1 => ''];
            $attributes[strtolower(trim($name))] = trim($value);
        }

        return $attributes;
    }

    /**
     * Returns whether a cookie would be sent instead of, or before, a secure one: RFC 6265bis, 5.7. An attacker in the
     * network can set cookies for http.
     *
     * @param Cookie $cookie
     */
    private function hidesSecureCookie(array $cookie): bool
    {
        foreach ($this->cookies as $other) {
            $isSameSite = $other['domain'] === $cookie['domain']
                || self::isWithin($other['domain'], $cookie['domain'])
                || self::isWithin($cookie['domain'], $other['domain']);
            if ($other['isSecure'] && $other['name'] === $cookie['name'] && $isSameSite
                && self::isPathWithin($cookie['path'], $other['path'])) {
                return true;
            }
        }

        return false;
    }

    /** @param array<string, string> $attributes */
    private static function expiry(array $attributes): int
    {
        $maxAge = $attributes['max-age'] ?? '';
        if (preg_match('/^-?\d{1,15}$/D', $maxAge) === 1) {
            return time() + (int) $maxAge;
        }
        $time = isset($attributes['expires']) ? strtotime($attributes['expires']) : false;

        return $time === false ? \PHP_INT_MAX : $time;
    }

    private static function defaultPath(Url $origin): string
    {
        $path = explode('?', $origin->target, 2)[0];
        $end = (int) strrpos($path, '/');

        return $end === 0 ? '/' : substr($path, 0, $end);
    }

    /** @param Cookie $cookie */
    private static function matches(array $cookie, Url $url): bool
    {
        return self::isPathWithin(explode('?', $url->target, 2)[0], $cookie['path'])
            && (!$cookie['isSecure'] || $url->scheme === 'https')
            && ($url->host === $cookie['domain']
                || !$cookie['isHostOnly'] && self::isWithin($url->host, $cookie['domain']));
    }

    private static function isPathWithin(string $path, string $folder): bool
    {
        return $path === $folder || str_starts_with($path, rtrim($folder, '/') . '/');
    }

    private static function isWithin(string $host, string $domain): bool
    {
        return str_ends_with($host, ".{$domain}") && filter_var($host, \FILTER_VALIDATE_IP) === false;
    }
}

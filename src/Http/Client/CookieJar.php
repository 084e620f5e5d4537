<?php

declare(strict_types=1);

namespace Spindle\Http\Client;

use Spindle\Http\Internal\Client\CookieDate;
use Spindle\Http\Internal\Client\Url;

/**
 * Stores the cookies of servers in memory, by the rules of RFC 6265bis. The jar ignores a cookie for a whole top-level
 * domain, such as com. But the jar does not know other public suffixes, such as co.uk. If a.co.uk sets a cookie for
 * co.uk, the jar sends the cookie to b.co.uk too. So use separate jars for servers of different owners.
 *
 * To save the cookies, serialize the jar. The serialized text has the values, so keep it as secret as a password.
 *
 * @phpstan-type Cookie array{
 *     name: string,
 *     value: \SensitiveParameterValue,
 *     domain: string,
 *     path: string,
 *     isHostOnly: bool,
 *     isSecure: bool,
 *     expires: int,
 *     number: int,
 * }
 */
final class CookieJar implements \Countable
{
    /** Limits of RFC 6265bis, 5.6, 5.7 and 6.1. */
    private const MAX_COOKIES = 3000;
    private const MAX_COOKIES_OF_DOMAIN = 50;
    private const MAX_NAME_AND_VALUE_BYTES = 4096;
    private const MAX_ATTRIBUTE_BYTES = 1024;

    /** Maximum bytes of a Cookie field's value. All cookies of a host and its parent domains together can be longer. */
    private const MAX_FIELD_BYTES = 65_536;

    /** @var array<string, Cookie> by domain, path and name, in the order in which the cookies were last stored */
    private array $cookies = [];

    /** Number of the newest cookie. A replaced cookie keeps its number. */
    private int $lastNumber = 0;

    /**
     * Stores cookies that a server has sent. Above 50 cookies of a domain, or 3,000 in all, the jar first drops expired
     * cookies. If the domain still has more than 50, its oldest cookie without the attribute `Secure` is dropped, or
     * its oldest one if all have `Secure`. If the jar still has more than 3,000, the oldest cookie of all is dropped.
     *
     * @param string $url URL of the request
     * @param list<string> $values values of the response's Set-Cookie fields
     */
    public function store(#[\SensitiveParameter] string $url, #[\SensitiveParameter] array $values): void
    {
        $origin = Url::parse($url);
        foreach ($values as $value) {
            if ($origin !== null) {
                $this->storeOne($origin, $value);
            }
        }
    }

    /**
     * Returns the value of the Cookie field for a URL; null if no cookie matches the URL. Cookies with longer paths
     * come first, then older cookies: RFC 6265bis, 5.8.3. A replaced cookie keeps its place. The value ends before the
     * first cookie with which it would exceed 64 KiB.
     */
    public function header(#[\SensitiveParameter] string $url): ?string
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
        usort($cookies, static fn(array $a, array $b): int
            => [\strlen($b['path']), $a['number']] <=> [\strlen($a['path']), $b['number']]);

        $field = '';
        foreach ($cookies as $cookie) {
            $pair = ($field === '' ? '' : '; ') . "{$cookie['name']}=" . self::value($cookie);
            if (\strlen($field) + \strlen($pair) > self::MAX_FIELD_BYTES) {
                break;
            }
            $field .= $pair;
        }

        return $field === '' ? null : $field;
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

    /** @return array<string, array<string, mixed>> cookies with their values */
    public function __serialize(): array
    {
        return array_map(
            static fn(array $cookie): array => ['value' => self::value($cookie)] + $cookie,
            $this->cookies,
        );
    }

    /** @param array<string, array<string, mixed>> $data */
    public function __unserialize(#[\SensitiveParameter] array $data): void
    {
        /** @var array<string, Cookie> $cookies */
        $cookies = array_map(
            static fn(array $cookie): array => ['value' => new \SensitiveParameterValue($cookie['value'])] + $cookie,
            $data,
        );
        $this->cookies = $cookies;
        $this->lastNumber = max([0, ...array_column($cookies, 'number')]);
    }

    private function storeOne(Url $origin, string $line): void
    {
        $cookie = self::parse($origin, $line);
        if ($cookie === null || $origin->scheme !== 'https' && $this->hidesSecureCookie($cookie)) {
            return;
        }
        $key = "{$cookie['domain']}\n{$cookie['path']}\n{$cookie['name']}";
        $cookie['number'] = $this->cookies[$key]['number'] ?? ++$this->lastNumber;
        unset($this->cookies[$key]); // a cookie that is replaced counts as new, so it is not dropped as the oldest
        if ($cookie['expires'] > time()) {
            $this->cookies[$key] = $cookie;
            $this->dropExcess($cookie['domain']);
        }
    }

    /** @return Cookie|null null for a cookie that must be ignored: RFC 6265bis, 5.6 and 5.7 */
    private static function parse(Url $origin, string $line): ?array
    {
        $parts = explode(';', $line);
        [$value, $name] = array_map(trim(...), array_reverse(explode('=', array_shift($parts), 2))) + [1 => ''];
        $attributes = self::attributes($parts);
        $domain = ltrim(strtolower($attributes['domain'] ?? ''), '.');
        $path = $attributes['path'] ?? '';
        $cookie = [
            'name' => $name,
            'value' => new \SensitiveParameterValue($value),
            'domain' => $domain === '' ? $origin->host : $domain,
            'path' => str_starts_with($path, '/') ? $path : self::defaultPath($origin),
            'isHostOnly' => !str_contains(rtrim($domain, '.'), '.'), // true also for a TLD: RFC 6265bis, 5.7
            'isSecure' => isset($attributes['secure']),
            'expires' => self::expiry($attributes),
            'number' => 0,
        ];
        $isValid = $name !== ''
            && \strlen($name) + \strlen($value) <= self::MAX_NAME_AND_VALUE_BYTES
            && preg_match('/[\x00-\x1f\x7f]/', $name . $value) === 0;
        $isAllowed = self::mayHaveDomain($origin, $cookie['domain'])
            && (!$cookie['isSecure'] || $origin->scheme === 'https')
            && self::meetsPrefixRules($cookie, isset($attributes['path']));

        return $isValid && $isAllowed ? $cookie : null;
    }

    /**
     * @param list<string> $parts
     *
     * @return array<string, string> values by lower-case attribute name
     */
    private static function attributes(array $parts): array
    {
        $attributes = [];
        foreach ($parts as $part) {
            [$name, $value] = array_map(trim(...), explode('=', $part, 2) + [1 => '']);
            $name = strtolower($name);
            $isValid = \strlen($value) <= self::MAX_ATTRIBUTE_BYTES && match ($name) {
                'max-age' => preg_match('/^-?\d++$/D', $value) === 1,
                'expires' => CookieDate::parse($value) !== null,
                default => true,
            };
            if ($isValid) {
                $attributes[$name] = $value;
            }
        }

        return $attributes;
    }

    /** @param Cookie $cookie */
    private static function value(array $cookie): string
    {
        $value = $cookie['value']->getValue();

        return \is_string($value) ? $value : '';
    }

    private static function mayHaveDomain(Url $origin, string $domain): bool
    {
        return $domain === $origin->host
            || str_contains(rtrim($domain, '.'), '.') && self::isSubdomain($origin->host, $domain);
    }

    /**
     * Returns whether a cookie meets the rules for names with `__Host-` or `__Secure-`: RFC 6265bis, 4.1.3 and 5.7.
     *
     * @param Cookie $cookie
     */
    private static function meetsPrefixRules(array $cookie, bool $hasPathAttribute): bool
    {
        $name = strtolower($cookie['name']);

        return match (true) {
            str_starts_with($name, '__host-')
                => $cookie['isSecure'] && $cookie['isHostOnly'] && $hasPathAttribute && $cookie['path'] === '/',
            str_starts_with($name, '__secure-') => $cookie['isSecure'],
            default => true,
        };
    }

    /** If a limit is exceeded, drops expired cookies. If that is not enough, drops one cookie: see {@see store()}. */
    private function dropExcess(string $domain): void
    {
        $countOfDomain = array_count_values(array_column($this->cookies, 'domain'))[$domain] ?? 0;
        if ($countOfDomain <= self::MAX_COOKIES_OF_DOMAIN && \count($this->cookies) <= self::MAX_COOKIES) {
            return;
        }
        $now = time();
        $this->cookies = array_filter($this->cookies, static fn(array $cookie): bool => $cookie['expires'] > $now);
        $sameDomain = array_filter($this->cookies, static fn(array $cookie): bool => $cookie['domain'] === $domain);
        if (\count($sameDomain) > self::MAX_COOKIES_OF_DOMAIN) {
            // An attacker in the network can add many cookies to responses over plain HTTP. These cookies have no
            // `Secure`. They are dropped first, because they must not displace cookies with `Secure`.
            $insecure = array_filter($sameDomain, static fn(array $cookie): bool => !$cookie['isSecure']);
            unset($this->cookies[array_key_first($insecure) ?? array_key_first($sameDomain)]);
        } elseif (\count($this->cookies) > self::MAX_COOKIES) {
            unset($this->cookies[array_key_first($this->cookies)]);
        }
    }

    /**
     * Returns whether a cookie from plain HTTP would hide a stored `Secure` cookie: RFC 6265bis, 5.7. An attacker in
     * the network can add a Set-Cookie field to a response over plain HTTP.
     *
     * @param Cookie $cookie
     */
    private function hidesSecureCookie(array $cookie): bool
    {
        foreach ($this->cookies as $other) {
            if (!$other['isSecure'] || $other['name'] !== $cookie['name']) {
                continue;
            }
            $isSameSite = $other['domain'] === $cookie['domain']
                || self::isSubdomain($other['domain'], $cookie['domain'])
                || self::isSubdomain($cookie['domain'], $other['domain']);
            if ($isSameSite && self::isPathWithin($cookie['path'], $other['path'])) {
                return true;
            }
        }

        return false;
    }

    /** @param array<string, string> $attributes */
    private static function expiry(array $attributes): int
    {
        if (isset($attributes['max-age'])) {
            $now = time();

            return $now + min((int) $attributes['max-age'], \PHP_INT_MAX - $now); // (int) limits it to PHP_INT_MAX
        }

        return CookieDate::parse($attributes['expires'] ?? '') ?? \PHP_INT_MAX;
    }

    private static function defaultPath(Url $origin): string
    {
        $end = (int) strrpos($origin->path(), '/');

        return $end === 0 ? '/' : substr($origin->path(), 0, $end);
    }

    /** @param Cookie $cookie */
    private static function matches(array $cookie, Url $url): bool
    {
        return self::isPathWithin($url->path(), $cookie['path'])
            && (!$cookie['isSecure'] || $url->scheme === 'https')
            && ($url->host === $cookie['domain']
                || !$cookie['isHostOnly'] && self::isSubdomain($url->host, $cookie['domain']));
    }

    private static function isPathWithin(string $path, string $folder): bool
    {
        return $path === $folder || str_starts_with($path, str_ends_with($folder, '/') ? $folder : "{$folder}/");
    }

    private static function isSubdomain(string $host, string $domain): bool
    {
        return str_ends_with($host, ".{$domain}") && filter_var($host, \FILTER_VALIDATE_IP) === false;
    }
}

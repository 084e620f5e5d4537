<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

/** A URL with the scheme http or https, without the fragment: RFC 3986. */
final readonly class Url
{
    /** Refuses a "\" before the path. Browsers read "\" as "/", so to them, the host of "http://a\@b/" is a, not b. */
    private const PATTERN = '~^(https?)://(?:([^@/?#\\\\]*+)@)?'
        . '(\[[0-9a-f:.]++\]|[^:/?#@\[\]\\\\\s\x00-\x20]++)(?::(\d{0,5}))?'
        . '(/[^?#]*+)?(\?[^#]*+)?(?:#.*)?$~Dis';

    private const MAX_SHOWN_BYTES = 200;

    private const HOST_NAME = '/^[a-z0-9_][a-z0-9_.\-]*+$/D';

    /** Value of the Host field: the host, and the port unless it is the scheme's default. RFC 9110, 7.2. */
    public string $authority;

    /** User and password; null if the URL has none. var_export() does not show them. */
    private ?\SensitiveParameterValue $userInfo;

    /**
     * @param string $host name in lower case, or IP address without brackets
     * @param string $target path and query, at least "/"
     */
    private function __construct(
        public string $scheme,
        public string $host,
        public int $port,
        public string $target,
        #[\SensitiveParameter]
        string $userInfo,
    ) {
        $this->userInfo = $userInfo === '' ? null : new \SensitiveParameterValue($userInfo);
        $isDefaultPort = $port === self::defaultPort($scheme);
        $this->authority = $isDefaultPort ? $this->hostWithBrackets() : $this->hostAndPort();
    }

    /** @throws \InvalidArgumentException when the URL is malformed. The message contains no user, password or query */
    public static function of(#[\SensitiveParameter] string $url): self
    {
        $parsed = self::parse($url);
        if ($parsed !== null) {
            return $parsed;
        }
        $shown = str_contains($url, '@') ? '' : ' ' . json_encode(
            substr(explode('?', $url, 2)[0], 0, self::MAX_SHOWN_BYTES),
            \JSON_INVALID_UTF8_SUBSTITUTE | \JSON_UNESCAPED_SLASHES | \JSON_UNESCAPED_UNICODE,
        );

        throw new \InvalidArgumentException(
            "The URL{$shown} is malformed. Give http:// or https:// with a host, and a port from 1 to 65535 if needed",
        );
    }

    /** @return self|null null for a malformed URL or a scheme other than http and https */
    public static function parse(#[\SensitiveParameter] string $url): ?self
    {
        if (preg_match(self::PATTERN, $url, $match, \PREG_UNMATCHED_AS_NULL) !== 1) {
            return null;
        }
        $scheme = strtolower($match[1]);
        $host = self::host($match[3]);
        $port = ($match[4] ?? '') === '' ? self::defaultPort($scheme) : (int) $match[4];
        if ($host === null || $port < 1 || $port > 65_535) {
            return null;
        }

        return new self($scheme, $host, $port, self::encode(($match[5] ?? '/') . ($match[6] ?? '')), $match[2] ?? '');
    }

    /**
     * Resolves a reference, such as the Location of a redirect: RFC 3986, 5.2. The result of a relative reference does
     * not have the user and password of this URL. Returns null if the reference is malformed.
     */
    public function resolve(string $reference): ?self
    {
        $reference = explode('#', trim($reference), 2)[0];
        if (preg_match('~^[A-Za-z][A-Za-z0-9+.\-]*+:~', $reference) === 1) {
            return self::parse($reference)?->withoutDotSegments();
        }
        if (str_starts_with($reference, '//')) {
            return self::parse("{$this->scheme}:{$reference}")?->withoutDotSegments();
        }
        $query = strstr($reference, '?');
        $path = explode('?', $reference, 2)[0];
        $target = match (true) {
            $reference === '' => $this->target,
            $path === '' => $this->path(),
            $path[0] === '/' => self::withoutDots($path),
            default => self::withoutDots(substr($this->path(), 0, (int) strrpos($this->path(), '/') + 1) . $path),
        };

        return new self(
            $this->scheme,
            $this->host,
            $this->port,
            self::encode($target . ($query === false ? '' : $query)),
            '',
        );
    }

    /** Returns a host name in lower case and ASCII; null if $name is malformed, or a required ext-intl is missing. */
    public static function asciiName(string $name): ?string
    {
        $name = strtolower($name);
        if (preg_match('/[\x80-\xff]/', $name) === 1) {
            $ascii = \extension_loaded('intl') ? idn_to_ascii($name, \IDNA_NONTRANSITIONAL_TO_ASCII) : false;
            $name = $ascii === false ? '' : $ascii;
        }

        return preg_match(self::HOST_NAME, $name) === 1 ? $name : null;
    }

    public function path(): string
    {
        return explode('?', $this->target, 2)[0];
    }

    public function origin(): string
    {
        return "{$this->scheme}://{$this->authority}";
    }

    /** Returns host and port, as in the target of CONNECT: RFC 9110, 9.3.6. */
    public function hostAndPort(): string
    {
        return "{$this->hostWithBrackets()}:{$this->port}";
    }

    /** Returns the value of an Authorization field for the user and password of the URL; null if the URL has none. */
    public function authorization(): ?string
    {
        $userInfo = $this->userInfo?->getValue();
        if (!\is_string($userInfo)) {
            return null;
        }
        $colon = str_contains($userInfo, ':') ? '' : ':'; // without a password, the colon is still sent: RFC 7617, 2

        return 'Basic ' . base64_encode(rawurldecode($userInfo) . $colon);
    }

    /** Returns a URL for messages, without its query, user and password. Returns "a malformed URL" if parsing fails. */
    public static function safe(#[\SensitiveParameter] string $url): string
    {
        return self::parse($url)?->withoutSecrets() ?? 'a malformed URL';
    }

    public function withoutSecrets(): string
    {
        return $this->origin() . $this->path();
    }

    public function __toString(): string
    {
        return $this->origin() . $this->target;
    }

    /** @return array<string, mixed> without user, password and query */
    public function __debugInfo(): array
    {
        return ['url' => $this->withoutSecrets()];
    }

    private function hostWithBrackets(): string
    {
        return str_contains($this->host, ':') ? "[{$this->host}]" : $this->host;
    }

    private static function defaultPort(string $scheme): int
    {
        return $scheme === 'https' ? 443 : 80;
    }

    private static function host(string $host): ?string
    {
        if (preg_match(self::HOST_NAME, $host) === 1) {
            return $host;
        }
        if ($host[0] === '[') {
            $ip = substr($host, 1, -1);

            return filter_var($ip, \FILTER_VALIDATE_IP, \FILTER_FLAG_IPV6) === false ? null : strtolower($ip);
        }

        return self::asciiName(rawurldecode($host));
    }

    /** Percent-encodes bytes that a target can't contain. So a line break in a URL can't add lines to the request. */
    private static function encode(string $target): string
    {
        return (string) preg_replace_callback(
            '/[^!$%&\'()*+,\/:;=?@A-Za-z0-9\-._~\[\]]/',
            static fn(array $match): string => rawurlencode($match[0]),
            $target,
        );
    }

    private function withoutDotSegments(): self
    {
        $target = self::withoutDots($this->path()) . strstr($this->target, '?');

        $userInfo = $this->userInfo?->getValue();

        return new self($this->scheme, $this->host, $this->port, $target, \is_string($userInfo) ? $userInfo : '');
    }

    /** Removes "." and ".." from a path: RFC 3986, 5.2.4. */
    private static function withoutDots(string $path): string
    {
        $segments = [];
        $given = explode('/', $path);
        $last = end($given);
        foreach (\array_slice($given, 1) as $segment) {
            if ($segment === '..') {
                array_pop($segments);
            } elseif ($segment !== '.') {
                $segments[] = $segment;
            }
        }
        $isFolder = $last === '.' || $last === '..';

        return '/' . implode('/', $segments) . ($isFolder && $segments !== [] ? '/' : '');
    }
}

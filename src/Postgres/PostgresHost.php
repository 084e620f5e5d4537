<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** The address of a PostgreSQL server. */
final readonly class PostgresHost implements \Stringable
{
    public const DEFAULT_PORT = 5432;

    /**
     * @param string $host a name, an IP address without brackets, or the absolute path of a Unix socket's folder
     * @param int $port port number, which is also part of the name of a Unix socket
     * @param string|null $address IP address to connect to, instead of looking up `$host` or using a Unix socket; the
     *     server's certificate must be valid for `$host`
     *
     * @throws \ValueError when a value is invalid
     */
    public function __construct(
        #[\SensitiveParameter]
        public string $host,
        public int $port = self::DEFAULT_PORT,
        public ?string $address = null,
    ) {
        $isFolder = str_starts_with($host, '/');
        // No message contains the host, because `$host` may be part of a password that was not percent-encoded.
        if (
            $host === ''
            || str_contains($host, "\0")
            || !$isFolder && preg_match('~[\0-\x20\x7f]~', $host) === 1
        ) {
            throw new \ValueError(
                'The host of a PostgreSQL server must be a name, an IP address or the folder of a socket',
            );
        }
        if (!$isFolder && strpbrk($host, '@/?#[]') !== false) {
            throw new \ValueError(
                "The host of a PostgreSQL server must not contain '@', '/', '?', '#' or a bracket. "
                    . 'In a URI, percent-encode the user, the password and the folder of a socket',
            );
        }
        if ($port < 1 || $port > 65535) {
            throw new \ValueError("A port must be from 1 to 65535, not {$port}");
        }
        if ($address !== null && filter_var($address, \FILTER_VALIDATE_IP) === false) {
            throw new \ValueError("The address of a PostgreSQL server must be an IP address, not '{$address}'");
        }
    }

    /**
     * Parses a host with an optional port.
     *
     * @param string $text such as "db.example.com", "10.0.0.1:5433", "[::1]:5432", "::1" or "/var/run/postgresql"
     *
     * @throws \ValueError when the text is not a host
     */
    public static function fromString(#[\SensitiveParameter] string $text): self
    {
        if (str_starts_with($text, '/') || filter_var($text, \FILTER_VALIDATE_IP, \FILTER_FLAG_IPV6) !== false) {
            return new self($text);
        }
        if (preg_match('~^(?:\[([^]]*)]|([^:]*))(?::([0-9]{1,5}))?$~D', $text, $part, \PREG_UNMATCHED_AS_NULL) !== 1) {
            throw new \ValueError('The host of a PostgreSQL server must have the form host or host:port');
        }

        return new self($part[1] ?? $part[2] ?? '', (int) ($part[3] ?? self::DEFAULT_PORT));
    }

    /** Returns whether the host is the folder of a Unix socket, and no address replaces the socket. */
    public function isSocket(): bool
    {
        return $this->address === null && str_starts_with($this->host, '/');
    }

    /** Returns whether the host is certainly this machine: a Unix socket, "localhost", or a loopback address. */
    public function isLocal(): bool
    {
        $address = $this->address ?? $this->host;

        return $this->isSocket()
            || $this->address === null && strcasecmp($this->host, 'localhost') === 0
            || preg_match('~^(?:127(?:\.[0-9]{1,3}){3}|::1)$~D', $address) === 1;
    }

    /** Returns the usual notation, such as "db:5432" or "/tmp/.s.PGSQL.5432". */
    public function __toString(): string
    {
        return match (true) {
            $this->isSocket() => rtrim($this->host, '/') . "/.s.PGSQL.{$this->port}",
            str_contains($this->host, ':') => "[{$this->host}]:{$this->port}",
            default => "{$this->host}:{$this->port}",
        };
    }
}

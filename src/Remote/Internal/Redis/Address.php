<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal\Redis;

use Spindle\Internal\Network\ClientStream;
use Spindle\Worker\PortableTask;

/** The address of the engine (Redis or Valkey), with user, password and database. */
final class Address
{
    private const DEFAULT_PORT = 6379;

    /** Matches what an address must not contain. parse_url() would accept control characters, and replace them. */
    private const STRAY_CHARACTER_PATTERN = '/^ | $|[\x00-\x1F\x7F?#]/D';

    /** Matches a host. parse_url() would read the end of an IPv6 address without brackets as the port. */
    private const HOST_PATTERN = '/^(?:\[[^[\]]+\]|[^:[\]]+)$/D';

    /** Matches an IPv6 address that lacks one bracket or both. User and password may precede the IPv6 address. */
    private const BARE_IPV6_PATTERN = '~://(?:.*@)?+(?:\[(?![^]/]+\](?:[:/]|$))|[\da-f:.]*:[\da-f.]*:)~is';

    /**
     * @param string $host name or IP address; '' for a Unix socket
     * @param string $path path of the Unix socket; '' for none
     */
    private function __construct(
        public readonly bool $tls,
        public readonly string $host,
        public readonly int $port,
        public readonly string $path,
        public readonly ?string $user,
        public readonly ?\SensitiveParameterValue $password,
        public readonly int $database,
    ) {}

    /**
     * @param string $address redis://[[user]:password@]host[:port][/database], with rediss:// in place of redis:// for
     *                        TLS, or unix://[[user]:password@]/path
     *
     * @throws \ValueError with a message that does not contain the address, which may contain a password
     */
    public static function parse(#[\SensitiveParameter] string $address): self
    {
        if ($address === '') {
            throw new \ValueError('The address of the engine is empty. ' . (PortableTask::isInWorker()
                ? 'The environment variable SPINDLE_BROKER of an agent (spindle work) is not passed on to its workers. '
                    . 'Read the address from a file'
                : 'Is the environment variable SPINDLE_BROKER set? It should be like '
                    . 'redis://:password@host:port/database'));
        }
        // parse_url() rejects a URL without a host, so a unix:// URL gets the host localhost.
        $parts = parse_url((string) preg_replace('~^(unix://(?:[^/]*@)?)(?=/.)~i', '$1localhost', $address));
        $parts = \is_array($parts) ? $parts : [];
        $parts += ['scheme' => '', 'host' => '', 'path' => '', 'user' => '', 'pass' => ''];
        ['host' => $host, 'path' => $path, 'user' => $user, 'pass' => $password] = $parts;
        $scheme = strtolower($parts['scheme']);
        $isAddress = self::isAddress($scheme, $host, $parts['port'] ?? null, $path);
        if (!$isAddress || preg_match(self::STRAY_CHARACTER_PATTERN, $address) === 1) {
            throw new \ValueError(
                'The address of an engine must be redis://:password@host:port/database, rediss:// for TLS, '
                    . 'or unix://:password@/path/of/the/socket, '
                    . 'with special characters of the password percent-encoded, but ' . self::mistake($address),
            );
        }
        if ($user !== '' && $password === '') {
            throw new \ValueError('The address of an engine has a user without a password: write user:password@');
        }
        if ($scheme !== 'unix' && preg_match('~^(/\d{0,10})?$~D', $path) !== 1) {
            throw new \ValueError('The path in the address of an engine must be a database number');
        }

        return new self(
            $scheme === 'rediss',
            $scheme === 'unix' ? '' : trim($host, '[]'),
            $parts['port'] ?? self::DEFAULT_PORT,
            $scheme === 'unix' ? $path : '',
            self::decoded($user),
            self::secret($password),
            $scheme === 'unix' ? 0 : (int) substr($path, 1),
        );
    }

    public function uri(): string
    {
        return $this->path !== '' ? "unix://{$this->path}" : ClientStream::uri($this->host, $this->port);
    }

    public function __toString(): string
    {
        return preg_replace('~^tcp://~', '', $this->uri()) ?? $this->uri();
    }

    /** @return array<string, mixed> without the password */
    public function __debugInfo(): array
    {
        return ['address' => (string) $this];
    }

    private static function isAddress(string $scheme, string $host, ?int $port, string $path): bool
    {
        return match ($scheme) {
            'redis', 'rediss' => preg_match(self::HOST_PATTERN, $host) === 1 && $port !== 0,
            'unix' => $host === 'localhost' && $path !== '' && $port === null,
            default => false,
        };
    }

    /** Returns a clause about the first mistake in an address. Quotes no part of the address, to hide the password. */
    private static function mistake(#[\SensitiveParameter] string $address): string
    {
        return match (true) {
            strpbrk($address, '?#') !== false => 'it contains ? or #, which are %3F and %23 in a password',
            preg_match(self::STRAY_CHARACTER_PATTERN, $address) === 1
                => 'it begins or ends with a space, or contains a line break or another control character',
            preg_match('~^(?:rediss?|unix)://~i', $address) !== 1
                => 'it does not begin with redis://, rediss:// or unix://',
            preg_match('~^(?:rediss?://|unix://[^/]*:).*/.*@~is', $address) === 1
                => 'its password contains /, which must be %2F',
            strncasecmp($address, 'unix', 4) === 0
                => 'it has no path of a socket, which must begin with / after unix:// or @',
            preg_match(self::BARE_IPV6_PATTERN, $address) === 1 => 'its IPv6 address is not in brackets, like [::1]',
            preg_match('~[^:/@]:+[^/:@\]]*(?:/\d*)?$~D', $address) === 1 => 'its port is not a number from 1 to 65535',
            default => 'it has no host',
        };
    }

    private static function secret(#[\SensitiveParameter] string $part): ?\SensitiveParameterValue
    {
        return $part === '' ? null : new \SensitiveParameterValue(rawurldecode($part));
    }

    private static function decoded(#[\SensitiveParameter] string $part): ?string
    {
        return $part === '' ? null : rawurldecode($part);
    }
}

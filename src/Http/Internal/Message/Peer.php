<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Message;

final readonly class Peer
{
    /** Bytes of the IPv6 prefix that providers assign to one client: RFC 6177, 2. */
    private const IPV6_PREFIX_BYTES = 8;

    /** @param string $network client's IPv4 address, binary /64 prefix of its IPv6 address, or "unix:" (Unix socket) */
    private function __construct(
        public string $address,
        public string $network,
        public int $port,
        public string $localAddress,
        public int $localPort,
        public bool $secure,
    ) {}

    /** Parses two names in the format of stream_socket_get_name(). $remote is '' for a client of a Unix socket. */
    public static function of(string $remote, string $local, bool $secure): self
    {
        [$address, $port] = self::split($remote);
        [$localAddress, $localPort] = self::split($local);

        return new self($address, self::network($address, $port), $port, $localAddress, $localPort, $secure);
    }

    public function authority(): string
    {
        return match (true) {
            $this->localPort === 0 => 'localhost', // a Unix socket
            str_contains($this->localAddress, ':') => "[{$this->localAddress}]:{$this->localPort}",
            default => "{$this->localAddress}:{$this->localPort}",
        };
    }

    private static function network(string $address, int $port): string
    {
        $isIpv6 = $port !== 0 && str_contains($address, ':');

        return $isIpv6 ? substr((string) inet_pton(explode('%', $address)[0]), 0, self::IPV6_PREFIX_BYTES) : $address;
    }

    /** @return array{string, int} */
    private static function split(string $name): array
    {
        $colon = strrpos($name, ':');
        if ($colon === false || str_contains($name, '/') || preg_match('/^\d++$/D', substr($name, $colon + 1)) !== 1) {
            return ['unix:', 0];
        }

        return [trim(substr($name, 0, $colon), '[]'), (int) substr($name, $colon + 1)];
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Middleware;

use Spindle\Http\Internal\IpNetwork;

/** A set of IP addresses and networks. The set can also contain all clients of Unix sockets. */
final readonly class Networks
{
    /** REMOTE_ADDR of a Unix socket's client. */
    private const UNIX_PEER = 'unix:';

    private bool $containsUnixClients;

    /** @var list<IpNetwork> */
    private array $networks;

    /**
     * @param list<string> $networks such as "10.0.0.1", "10.0.0.0/8", "2001:db8::/32", "unix"
     *
     * @throws \ValueError when an entry is neither an address, a network nor "unix"
     */
    public function __construct(array $networks)
    {
        $this->containsUnixClients = \in_array('unix', $networks, true);
        $parsed = [];
        foreach (array_diff($networks, ['unix']) as $network) {
            $parsed[] = IpNetwork::parse($network)
                ?? throw new \ValueError(
                    'A proxy must be an IP address, a network such as 10.0.0.0/8, or "unix", not '
                        . json_encode($network, \JSON_INVALID_UTF8_SUBSTITUTE),
                );
        }
        $this->networks = $parsed;
    }

    /** Returns an IP address in its shortest form. Converts IPv4-mapped IPv6 to IPv4. Returns other text unchanged. */
    public static function canonical(string $address): string
    {
        $packed = IpNetwork::pack($address);

        return $packed === null ? $address : (string) inet_ntop($packed);
    }

    public function contains(string $address): bool
    {
        $packed = IpNetwork::pack($address);
        if ($packed === null) {
            return $this->containsUnixClients && $address === self::UNIX_PEER;
        }
        foreach ($this->networks as $network) {
            if ($network->contains($packed)) {
                return true;
            }
        }

        return false;
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

use Spindle\Http\Internal\IpNetwork;

/** Checks whether IP addresses are public, that is, globally reachable. */
final class AddressGuard
{
    /**
     * Multicast networks, and networks that are not globally reachable according to IANA's registries (RFC 6890). Whole
     * networks are listed, even if a registry excepts single addresses, such as 192.0.0.9.
     */
    private const NOT_PUBLIC = [
        '0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.0.0.0/24',
        '192.0.2.0/24', '192.88.99.0/24', '192.168.0.0/16', '198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24',
        '224.0.0.0/4', '240.0.0.0/4',
        '::/3', '4000::/2', '8000::/1', // Only 2000::/3 is public: RFC 4291, 2.4.
        '2001::/23', '2001:db8::/32', '3fff::/20',
        '2002::/16', // A 6to4 address contains an IPv4 address, which may be private: RFC 3056.
    ];

    /** Prefix of addresses that a gateway translates to IPv4: the last 4 bytes are the IPv4 address (RFC 6052, 2.1). */
    private const NAT64_PREFIX = "\0\x64\xff\x9b\0\0\0\0\0\0\0\0";

    public static function isPublic(string $ip): bool
    {
        $packed = IpNetwork::pack($ip);
        if ($packed === null) {
            return false;
        }
        if (str_starts_with($packed, self::NAT64_PREFIX)) {
            $packed = substr($packed, 12);
        }
        $contains = static fn(string $network): bool => IpNetwork::parse($network)?->contains($packed) !== false;

        return array_filter(self::NOT_PUBLIC, $contains) === [];
    }
}

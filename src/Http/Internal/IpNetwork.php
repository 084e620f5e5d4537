<?php

declare(strict_types=1);

namespace Spindle\Http\Internal;

/** A network of IP addresses, or a single address. IPv4-mapped IPv6 addresses are treated as IPv4 addresses. */
final readonly class IpNetwork
{
    private const IPV4_MAPPED_PREFIX = "\0\0\0\0\0\0\0\0\0\0\xff\xff";

    private function __construct(private string $base, private string $mask) {}

    /** Parses a network such as "10.0.0.1", "10.0.0.0/8" or "2001:db8::/32". Returns null for a malformed network. */
    public static function parse(string $network): ?self
    {
        preg_match('@^([^/]*+)(?:/(\d{1,3}))?$@D', $network, $part);
        $packed = self::pack($part[1] ?? '');
        if ($packed === null) {
            return null;
        }
        $length = \strlen($packed);
        $bits = isset($part[2])
            ? (int) $part[2] - ($length === 4 && str_contains($network, ':') ? 96 : 0) // bits of IPV4_MAPPED_PREFIX
            : $length * 8;
        if ($bits < 0 || $bits > $length * 8) {
            return null;
        }
        $mask = str_pad(str_repeat("\xff", intdiv($bits, 8)) . \chr(0xff00 >> $bits % 8 & 0xff), $length, "\0");
        $mask = substr($mask, 0, $length);

        return new self($packed & $mask, $mask);
    }

    /** Returns an address as bytes: 4 for IPv4 and IPv4-mapped IPv6, otherwise 16. Returns null for other text. */
    public static function pack(string $address): ?string
    {
        $packed = filter_var($address, \FILTER_VALIDATE_IP) === false ? false : inet_pton($address);
        if ($packed === false) {
            return null;
        }

        return str_starts_with($packed, self::IPV4_MAPPED_PREFIX) ? substr($packed, 12) : $packed;
    }

    /** @param string $packed address from {@see pack()} */
    public function contains(string $packed): bool
    {
        return \strlen($packed) === \strlen($this->base) && ($packed & $this->mask) === $this->base;
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Middleware;

/** A set of IP addresses and networks. The set can also contain all clients of Unix sockets. */
final readonly class Networks
{
    /** REMOTE_ADDR of a Unix socket's client. */
    private const UNIX_PEER = 'unix:';

    private const IPV4_MAPPED_PREFIX = "\0\0\0\0\0\0\0\0\0\0\xff\xff";

    private bool $containsUnixClients;

    /** @var array<int, list<array{string, string}>> mask and network, by the length of an address in bytes */
    private array $networks;

    /**
     * @param list<string> $networks such as "10.0.0.1", "10.0.0.0/8", "2001:db8::/32", "unix"
     *
     * @throws \ValueError
     */
    public function __construct(array $networks)
    {
        $this->containsUnixClients = \in_array('unix', $networks, true);
        $parsed = [4 => [], 16 => []];
        foreach (array_diff($networks, ['unix']) as $network) {
            [$mask, $base] = self::parse($network)
                ?? throw new \ValueError(
                    'A proxy must be an IP address, a network such as 10.0.0.0/8, or "unix", not '
                        . json_encode($network, \JSON_INVALID_UTF8_SUBSTITUTE),
                );
            $parsed[\strlen($mask)][] = [$mask, $base];
        }
        $this->networks = $parsed;
    }

    /** Returns an IP address in its shortest form, an IPv4-mapped IPv6 address as IPv4, and other text unchanged. */
    public static function canonical(string $address): string
    {
        $packed = self::packed($address);

        return $packed === null ? $address : (string) inet_ntop($packed);
    }

    public function contains(string $address): bool
    {
        $packed = self::packed($address);
        if ($packed === null) {
            return $this->containsUnixClients && $address === self::UNIX_PEER;
        }
        foreach ($this->networks[\strlen($packed)] ?? [] as [$mask, $base]) {
            if (($packed & $mask) === $base) {
                return true;
            }
        }

        return false;
    }

    /** @return array{string, string}|null mask and network; null for a malformed network */
    private static function parse(string $network): ?array
    {
        preg_match('@^([^/]*+)(?:/(\d{1,3}))?$@D', $network, $part);
        $packed = self::packed($part[1] ?? '');
        if ($packed === null) {
            return null;
        }
        $length = \strlen($packed);
        $bits = isset($part[2])
            ? (int) $part[2] - ($length === 4 && str_contains($network, ':') ? 96 : 0)
            : $length * 8;
        if ($bits < 0 || $bits > $length * 8) {
            return null;
        }
        $mask = str_pad(str_repeat("\xff", intdiv($bits, 8)) . \chr(0xff00 >> $bits % 8 & 0xff), $length, "\0");
        $mask = substr($mask, 0, $length);

        return [$mask, $packed & $mask];
    }

    /** Returns the bytes of an address, for an IPv4-mapped one those of IPv4; null for text that is no IP address. */
    private static function packed(string $address): ?string
    {
        $packed = filter_var($address, \FILTER_VALIDATE_IP) === false ? false : inet_pton($address);
        if ($packed === false) {
            return null;
        }

        return str_starts_with($packed, self::IPV4_MAPPED_PREFIX) ? substr($packed, 12) : $packed;
    }
}

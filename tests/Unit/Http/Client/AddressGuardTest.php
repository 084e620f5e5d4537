<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Client;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Http\Internal\Client\AddressGuard;

final class AddressGuardTest extends TestCase
{
    /** First and last address of each network that IANA's registries list as not globally reachable. */
    private const NOT_PUBLIC = [
        'this network' => ['0.0.0.0', '0.255.255.255'],
        'private 10' => ['10.0.0.0', '10.255.255.255'],
        'shared' => ['100.64.0.0', '100.127.255.255'],
        'loopback' => ['127.0.0.0', '127.255.255.255'],
        'link-local' => ['169.254.0.0', '169.254.255.255'],
        'private 172' => ['172.16.0.0', '172.31.255.255'],
        'IETF protocols' => ['192.0.0.0', '192.0.0.255'],
        'documentation 1' => ['192.0.2.0', '192.0.2.255'],
        'relays of 6to4' => ['192.88.99.0', '192.88.99.255'],
        'private 192' => ['192.168.0.0', '192.168.255.255'],
        'benchmarks' => ['198.18.0.0', '198.19.255.255'],
        'documentation 2' => ['198.51.100.0', '198.51.100.255'],
        'documentation 3' => ['203.0.113.0', '203.0.113.255'],
        'multicast' => ['224.0.0.0', '239.255.255.255'],
        'reserved and broadcast' => ['240.0.0.0', '255.255.255.255'],
        'unspecified and loopback' => ['::', '::1'],
        'IPv4-compatible' => ['::8.8.8.8', '::9.255.255.255'],
        'IPv4-mapped' => ['::ffff:10.0.0.0', '::ffff:10.255.255.255'],
        'IPv4-translated' => ['::ffff:0:8.8.8.8', '::ffff:0:9.9.9.9'],
        'NAT64 to private' => ['64:ff9b::10.0.0.0', '64:ff9b::10.255.255.255'],
        'local NAT64' => ['64:ff9b:1::', '64:ff9b:1:ffff:ffff:ffff:ffff:ffff'],
        'no NAT64' => ['64:ff9b:0:1::8.8.8.8', '64:ff9b::1:8.8.8.8'],
        'discard' => ['100::', '100::ffff:ffff:ffff:ffff'],
        'dummy' => ['100:0:0:1::', '100:0:0:1:ffff:ffff:ffff:ffff'],
        'IETF protocols and Teredo' => ['2001::', '2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff'],
        'documentation 4' => ['2001:db8::', '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff'],
        '6to4' => ['2002::', '2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
        'documentation 5' => ['3fff::', '3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff'],
        'segment routing' => ['5f00::', '5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
        'unique local' => ['fc00::', 'fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
        'link-local unicast' => ['fe80::', 'febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
        'site-local' => ['fec0::', 'feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
        'multicast of IPv6' => ['ff00::', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
    ];

    /** Neighbours of these networks, and special addresses that are globally reachable. */
    private const PUBLIC = [
        '1.0.0.0', '9.255.255.255', '11.0.0.0', '100.63.255.255', '100.128.0.0', '126.255.255.255', '128.0.0.0',
        '169.253.255.255', '169.255.0.0', '172.15.255.255', '172.32.0.0', '191.255.255.255', '192.0.1.0', '192.0.1.255',
        '192.0.3.0', '192.31.196.1', '192.52.193.1', '192.88.98.255', '192.88.100.0', '192.167.255.255', '192.169.0.0',
        '192.175.48.1', '198.17.255.255', '198.20.0.0', '198.51.99.255', '198.51.101.0', '203.0.112.255', '203.0.114.0',
        '223.255.255.255', '::ffff:8.8.8.8', '64:ff9b::8.8.8.8', '2000::', '2001:200::', '2001:db7::', '2001:db9::',
        '2003::', '2620:4f:8000::1', '2606:4700::1111', '3ffe::1', '3fff:1000::',
    ];

    /** @return iterable<string, array{string, bool}> */
    public static function addresses(): iterable
    {
        foreach (self::NOT_PUBLIC as $name => [$first, $last]) {
            yield "{$name}: {$first}" => [$first, false];
            yield "{$name}: {$last}" => [$last, false];
        }
        foreach (self::PUBLIC as $address) {
            yield $address => [$address, true];
        }
        yield 'no address' => ['example.test', false];
        yield 'with a zone' => ['fe80::1%eth0', false];
    }

    #[DataProvider('addresses')]
    public function testOnlyGloballyReachableAddressesArePublic(string $address, bool $isPublic): void
    {
        self::assertSame($isPublic, AddressGuard::isPublic($address));
    }
}

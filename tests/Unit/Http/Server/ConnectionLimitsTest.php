<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Server;

use PHPUnit\Framework\TestCase;
use Spindle\Http\HttpServerOptions;
use Spindle\Http\Internal\Form\DiskFiles;
use Spindle\Http\Internal\Message\Peer;
use Spindle\Http\Internal\Server\ConnectionLimits;

final class ConnectionLimitsTest extends TestCase
{
    public function testTheAddressesOfAnIpv6NetworkCountTogether(): void
    {
        $room = self::room();
        $room->countConnection(self::peer('[2001:db8:1:2::1]'));
        $room->countConnection(self::peer('[2001:db8:1:2:ffff::2]'));

        self::assertFalse($room->admits(self::peer('[2001:db8:1:2::3]'), []));
        self::assertTrue($room->admits(self::peer('[2001:db8:1:3::1]'), []));
        $room->uncountConnection(self::peer('[2001:db8:1:2::1]'));
        self::assertTrue($room->admits(self::peer('[2001:db8:1:2::3]'), []));
    }

    public function testEachIpv4AddressCountsSeparately(): void
    {
        $room = self::room();
        $room->countConnection(self::peer('192.0.2.1'));
        $room->countConnection(self::peer('192.0.2.1'));

        self::assertFalse($room->admits(self::peer('192.0.2.1'), []));
        self::assertTrue($room->admits(self::peer('192.0.2.2'), []));
    }

    public function testOtherAddressesInTheNetworkOfAProxyAreNotTrusted(): void
    {
        $room = self::room();
        [$proxy, $other] = [self::peer('[fe80::1%eth0]'), self::peer('[fe80::2%eth0]')];
        $room->countConnection($proxy);
        $room->countConnection($proxy);
        $room->trust($proxy);

        self::assertTrue($room->admits($proxy, []));
        self::assertFalse($room->admits($other, []));
        $room->uncountConnection($proxy);
        $room->uncountConnection($proxy);
        $room->countConnection($other);
        $room->countConnection($other);
        self::assertFalse($room->admits($proxy, []), 'it is trusted again after its next request');
    }

    private static function room(): ConnectionLimits
    {
        return new ConnectionLimits(
            new HttpServerOptions(maxConnectionsPerAddress: 2),
            new DiskFiles(new OneDescriptor()),
        );
    }

    private static function peer(string $address): Peer
    {
        return Peer::of("{$address}:1", '127.0.0.1:80', false);
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Remote;

use Spindle\Remote\Internal\LeaseGuard;
use Spindle\Tests\Processes;
use Spindle\Tests\TidyTestCase;

/** The helper process of an agent. */
final class LeaseGuardTest extends TidyTestCase
{
    public function testTheHelperHasNoSocketOfTheAgent(): void
    {
        $sockets = stream_socket_pair(\STREAM_PF_UNIX, \STREAM_SOCK_STREAM, 0);
        self::assertIsArray($sockets);
        $others = Processes::childrenOf((int) getmypid());
        $guard = new LeaseGuard();
        $guard->start();
        $guards = array_keys(array_diff_key(Processes::childrenOf((int) getmypid()), $others));
        self::assertCount(1, $guards);
        fclose($sockets[0]);
        stream_set_timeout($sockets[1], 5);

        self::assertSame('', fread($sockets[1], 1), 'the other end is closed');
        self::assertTrue(feof($sockets[1]));
        self::assertTrue(Processes::isAlive($guards[0]));
        $guard->close();
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Postgres;

use PHPUnit\Framework\TestCase;
use Spindle\Postgres\Internal\ConnectionSession;
use Spindle\Postgres\Internal\Session;
use Spindle\Postgres\Result;
use Spindle\Tests\VirtualTime;

use function Amp\async;
use function Amp\delay;

final class ConnectionSessionTest extends TestCase
{
    use VirtualTime;

    public function testALongWaitForAnotherFiberIsLogged(): void
    {
        $session = self::createStub(Session::class);
        $session->method('isOpen')->willReturn(true);
        $session->method('transactionStatus')->willReturn('T');
        $session->method('query')->willReturn(new Result(null, null, 7));
        $held = new ConnectionSession($session, isTransaction: true);
        $file = (string) tempnam(sys_get_temp_dir(), 'log');
        $before = (string) \ini_get('error_log');
        ini_set('error_log', $file);
        try {
            $nested = async(static function () use ($held, $session): void {
                $held->acquire(null);
                delay(15);
                $held->release($session);
            });
            delay(0);
            $waiting = async(static fn(): int => $held->query('SELECT 1', [], null)->affectedRows);
            delay(9);
            self::assertSame('', file_get_contents($file));
            delay(2);
            self::assertStringContainsString(
                'waited for 10 s for a nested transaction',
                (string) file_get_contents($file),
            );
            $nested->await();
            self::assertSame(7, $waiting->await());
        } finally {
            ini_set('error_log', $before);
            unlink($file);
        }
    }
}

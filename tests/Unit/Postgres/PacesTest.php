<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Postgres;

use PHPUnit\Framework\TestCase;
use Spindle\Postgres\ConnectionFailedException;
use Spindle\Postgres\Internal\Pool\Counts;
use Spindle\Postgres\Internal\Pool\Paces;
use Spindle\Postgres\Internal\Pool\Transience;

/** What a pool goes by. */
final class PacesTest extends TestCase
{
    public function testAStatementIsShortOnceItWas(): void
    {
        $paces = new Paces();
        self::assertFalse($paces->isShort('SELECT 1'));
        $paces->learn('SELECT 1', Paces::SHORT);

        self::assertTrue($paces->isShort('SELECT 1'));
        self::assertFalse($paces->isShort('SELECT 2'));
    }

    public function testOneThatWasSlowHasToProveItself(): void
    {
        $paces = new Paces();
        $paces->learn('SELECT 1', 0);
        $paces->learn('SELECT 1', Paces::SHORT + 1);
        for ($i = 0; $i < 10; ++$i) {
            self::assertFalse($paces->isShort('SELECT 1'), "after {$i} short runs");
            $paces->learn('SELECT 1', 0);
        }
        self::assertTrue($paces->isShort('SELECT 1'));
    }

    public function testOneThatChangesTheSessionNeverSharesIt(): void
    {
        $paces = new Paces();
        for ($i = 0; $i < 20; ++$i) {
            $paces->learn('SET a = 1', 0);
        }
        self::assertFalse($paces->isShort('SET a = 1'));
    }

    public function testOneThatConcernsATransactionNeverSharesIt(): void
    {
        $paces = new Paces();
        foreach (['BEGIN', '/* a /* b */ */ start transaction', 'COMMIT', 'ROLLBACK', "PREPARE TRANSACTION 'a'"] as $sql) {
            for ($i = 0; $i < 20; ++$i) {
                $paces->learn($sql, 0);
            }
            self::assertFalse($paces->isShort($sql), $sql);
        }
    }

    public function testWhatIsRememberedIsBounded(): void
    {
        $paces = new Paces();
        $before = memory_get_usage();
        for ($i = 0; $i < 100_000; ++$i) {
            $paces->learn("SELECT {$i}", 0);
        }
        self::assertLessThan(2 << 20, memory_get_usage() - $before);
        self::assertTrue($paces->isShort('SELECT 99999'));
    }

    public function testTimesOfWaitingAreCountedByTheirBounds(): void
    {
        $counts = new Counts();
        foreach ([0.0, 0.001, 0.0011, 0.3, 5.0, 5.1, 1e9] as $seconds) {
            $counts->waited($seconds);
        }

        self::assertSame([0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0], array_map(floatval(...), \array_slice(array_keys($counts->waited), 0, -1)));
        self::assertSame([2, 1, 0, 0, 0, 1, 0, 1, 2], array_values($counts->waited));
    }

    public function testOnlyFailuresThatPassByThemselvesAreWaitedFor(): void
    {
        foreach (['53300' => true, '57P03' => true, '57P01' => true, '3D000' => false, '42704' => false] as $state => $passes) {
            self::assertSame($passes, Transience::of(ConnectionFailedException::everywhere(['a reason'], (string) $state)));
        }
        self::assertTrue(Transience::of(ConnectionFailedException::everywhere(['refused'])));
        self::assertFalse(Transience::of(new \RuntimeException()));
    }
}

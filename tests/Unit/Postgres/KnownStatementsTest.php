<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Postgres;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Postgres\ConnectionFailedException;
use Spindle\Postgres\Internal\Connect\AttemptFailedException;
use Spindle\Postgres\Internal\Pool\KnownStatements;
use Spindle\Postgres\Internal\Pool\PoolCounters;
use Spindle\Postgres\Internal\Pool\TransientFailures;
use Spindle\Postgres\Internal\Protocol\BusyTime;
use Spindle\Postgres\Internal\Protocol\ServerTime;
use Spindle\Postgres\Internal\SqlText;

/** Tests how a pool recognizes short statements. */
final class KnownStatementsTest extends TestCase
{
    public function testAStatementMayShareAfterAShortExecution(): void
    {
        $statements = new KnownStatements();
        self::assertNull($statements->find('SELECT 1'));
        $statements->learn('SELECT 1', ServerTime::SHORT_NANOSECONDS);

        self::assertTrue($statements->find('SELECT 1')?->mayShare);
        self::assertNull($statements->find('SELECT 2'));
    }

    public function testCachedStatementsNeedLittleMemory(): void
    {
        $statements = new KnownStatements();
        $before = memory_get_usage();
        for ($i = 0; $i < 600; ++$i) {
            $statements->learn(str_pad("SELECT {$i}", SqlText::MAX_CACHED_BYTES - 100), 0);
            $statements->learn(str_pad("SELECT {$i}", SqlText::MAX_CACHED_BYTES + 1), 0);
            self::assertLessThan(6_000_000, memory_get_usage() - $before);
        }
    }

    public function testASlowStatementMustBeFastFiftyTimesBeforeItShares(): void
    {
        $statements = new KnownStatements();
        $statements->learn('SELECT 1', 0);
        $statements->learn('SELECT 1', 50_000_000);
        for ($i = 0; $i < 50; ++$i) {
            self::assertFalse($statements->find('SELECT 1')?->mayShare, "after {$i} short executions");
            $statements->learn('SELECT 1', -1);
            $statements->learn('SELECT 1', 0);
        }
        self::assertTrue($statements->find('SELECT 1')?->mayShare);
    }

    public function testAStatementThatIsSlowRepeatedlyStopsSharing(): void
    {
        $statements = new KnownStatements();
        $statements->learn('SELECT 1', 0);
        $statements->learn('SELECT 1', 4 * ServerTime::SHORT_NANOSECONDS);
        self::assertTrue($statements->find('SELECT 1')?->mayShare);
        for ($i = 0; $i < 12; ++$i) {
            $statements->learn('SELECT 1', 4 * ServerTime::SHORT_NANOSECONDS);
        }
        self::assertFalse($statements->find('SELECT 1')?->mayShare);
        for ($i = 0; $i < 4; ++$i) {
            $statements->learn('SELECT 1', 0);
        }
        self::assertTrue($statements->find('SELECT 1')?->mayShare);
    }

    public function testAnUnknownDurationChangesNothing(): void
    {
        $statements = new KnownStatements();
        $statements->learn('SELECT 1', 1_000_000);
        $statements->learn('SELECT 1', -1);

        self::assertSame(1_000_000, $statements->find('SELECT 1')?->cost);
    }

    public function testTheCostIsNearerToTheShortestTimeThanToTheLongest(): void
    {
        $statements = new KnownStatements();
        for ($i = 0; $i < 100; ++$i) {
            $statements->learn('SELECT 1', $i % 2 === 0 ? 100_000 : 2_000_000);
        }
        self::assertLessThan(400_000, $statements->find('SELECT 1')?->cost);
        for ($i = 0; $i < 200; ++$i) {
            $statements->learn('SELECT 1', 2_000_000);
        }
        self::assertGreaterThan(1_800_000, $statements->find('SELECT 1')?->cost);
    }

    /**
     * @return iterable<string, array{string, bool, bool}> SQL, whether it leaves the session unchanged, whether it may
     *     share
     */
    public static function statements(): iterable
    {
        foreach ([
            'SELECT 1', ' (select 1) union select 2', 'VALUES (1)', 'TABLE a', 'WITH a AS (SELECT 1) SELECT * FROM a',
            '/* a /* b */ */ select updated, shared FROM a',
            "SELECT substring('a' for 1)", 'SELECT a FROM b WHERE c = $1',
        ] as $sql) {
            yield $sql => [$sql, true, true];
        }
        foreach ([
            'UPDATE a SET b = 1', 'insert into a values (1)', 'DELETE FROM a',
            'MERGE INTO a USING b ON true WHEN MATCHED THEN DELETE', 'SELECT 1 FROM a FOR UPDATE',
            "SELECT 1 FROM a FOR\nNO KEY UPDATE", 'SELECT 1 FROM a FOR /* a */ SHARE',
            'select 1 from a for key share', 'WITH a AS (DELETE FROM b RETURNING *) SELECT * FROM a',
            'SELECT 1 INTO a', 'SELECT pg_advisory_xact_lock(1)',
        ] as $sql) {
            yield $sql => [$sql, true, false];
        }
        foreach ([
            'SET a = 1',
            'BEGIN',
            '/* a /* b */ */ start transaction',
            'COMMIT',
            'ROLLBACK',
            "PREPARE TRANSACTION 'a'",
            'LOCK a',
            'CALL a()',
            'DO $$ $$',
            'TRUNCATE a',
            'VACUUM',
            'SELECT pg_advisory_lock(1)',
            'LISTEN a',
        ] as $sql) {
            yield $sql => [$sql, false, false];
        }
    }

    #[DataProvider('statements')]
    public function testOnlyStatementsThatReadAndChangeNothingMayShare(string $sql, bool $isPlain, bool $shares): void
    {
        $statements = new KnownStatements();
        for ($i = 0; $i < 100; ++$i) {
            $statements->learn($sql, 0);
        }
        self::assertSame([$isPlain, $shares], [$statements->find($sql)?->isPlain, $statements->find($sql)?->mayShare]);
    }

    public function testTheNumberOfCachedStatementsIsLimited(): void
    {
        $statements = new KnownStatements();
        $before = memory_get_usage();
        for ($i = 0; $i < 100_000; ++$i) {
            $statements->learn("SELECT {$i}", 0);
        }
        self::assertLessThan(2 << 20, memory_get_usage() - $before);
        self::assertTrue($statements->find('SELECT 99999')?->mayShare);
    }

    public function testAnsweredWritesThatNothingTimesAreForgotten(): void
    {
        $time = new ServerTime(13_000_000);
        $before = memory_get_usage();
        for ($head = 0; $head < 2000; ++$head) {
            $time->recordWrite($head, $head + 2, $head);
        }

        self::assertLessThan(20_000, memory_get_usage() - $before);
    }

    public function testAStatementIsTimedWithoutTheRoundTrip(): void
    {
        $time = new ServerTime(20_000_000);
        $time->recordWrite(0, 1, 1_000_000_000);
        self::assertSame(3_000_000, $time->recordAnswers(0, 1, 1_023_500_000));
        $time->recordWrite(1, 2, 2_000_000_000);
        self::assertSame(0, $time->recordAnswers(1, 1, 2_012_000_000), 'a round trip takes less than that');
        $time->recordWrite(2, 3, 3_000_000_000);
        self::assertSame(1_000_000, $time->recordAnswers(2, 1, 3_013_500_000));
    }

    public function testAStatementBehindOthersIsTimedFromTheAnswerBefore(): void
    {
        $time = new ServerTime(20_000_000);
        $time->recordWrite(0, 3, 1_000_000_000);
        self::assertSame(0, $time->recordAnswers(0, 1, 1_020_000_000));
        self::assertSame(4_000_000, $time->recordAnswers(1, 1, 1_024_000_000));
        self::assertSame(1_000_000, $time->recordAnswers(2, 1, 1_025_000_000));
    }

    public function testAStatementThatWasSentLateIsTimedFromItsSending(): void
    {
        $time = new ServerTime(20_000_000);
        $time->recordWrite(0, 1, 1_000_000_000);
        $time->recordWrite(0, 2, 1_010_000_000);
        self::assertSame(0, $time->recordAnswers(0, 1, 1_020_000_000));
        self::assertSame(1_000_000, $time->recordAnswers(1, 1, 1_031_000_000));
    }

    public function testStatementsThatAreAnsweredTogetherHaveTheSameTime(): void
    {
        $time = new ServerTime(0);
        $time->recordWrite(0, 4, 1_000_000_000);
        self::assertSame(1_000_000, $time->recordAnswers(0, 4, 1_004_500_000));
    }

    public function testTheTimeInWhichThisProcessIsBusyIsNotTheServers(): void
    {
        $time = new ServerTime(0);
        $begin = (int) hrtime(true);
        $time->recordWrite(0, 1, $begin);
        for ($busy = BusyTime::until($begin), $i = 0; BusyTime::until((int) hrtime(true)) - $busy < 50_000_000; ++$i) {
            hash('sha256', (string) $i);
        }
        $now = (int) hrtime(true);

        self::assertLessThan($now - $begin - 40_000_000, $time->recordAnswers(0, 1, $now));
    }

    public function testWaitsAreCountedInTheBucketsOfTheHistogram(): void
    {
        $counts = new PoolCounters();
        foreach ([0.0, 0.001, 0.0011, 0.3, 5.0, 5.1, 1e9] as $seconds) {
            $counts->waits->add($seconds);
        }
        $precision = (string) ini_set('precision', '17'); // as in some php.ini files
        $waits = $counts->waits->statistics('wait_seconds');
        ini_set('precision', $precision);

        self::assertSame(
            [
                'wait_seconds_le_0.001_total' => 2,
                'wait_seconds_le_0.005_total' => 3,
                'wait_seconds_le_0.01_total' => 3,
                'wait_seconds_le_0.05_total' => 3,
                'wait_seconds_le_0.1_total' => 3,
                'wait_seconds_le_0.5_total' => 4,
                'wait_seconds_le_1_total' => 4,
                'wait_seconds_le_5_total' => 5,
                'wait_seconds_le_inf_total' => 7,
                'wait_seconds_total' => 0.0 + 0.001 + 0.0011 + 0.3 + 5.0 + 5.1 + 1e9,
            ],
            $waits,
        );
    }

    public function testOnlyFailuresThatMayPassSoonAreTransient(): void
    {
        foreach ([
            '53300' => true,
            '57P03' => true,
            '57P01' => true,
            '3D000' => false,
            '42704' => false,
        ] as $state => $passes) {
            self::assertSame(
                $passes,
                TransientFailures::includes(ConnectionFailedException::everywhere(['a reason'], (string) $state)),
            );
        }
        foreach ([
            'server login has been failing, try again later (server_login_retry)' => true,
            'server login has been failing, cached error: connect failed (server_login_retry)' => true,
            'pgbouncer cannot connect to server' => true,
            'client_login_timeout (server down)' => true,
            'query_wait_timeout' => false,
            'no such database: shop' => false,
            'unsupported startup parameter: search_path' => false,
        ] as $message => $isTransient) {
            $failure = ConnectionFailedException::everywhere(["pooler:6432: {$message} (08P01)"], '08P01');
            self::assertSame($isTransient, TransientFailures::includes($failure), $message);
            self::assertSame($isTransient, TransientFailures::isUnreachable($failure), $message);
        }
        $full = ConnectionFailedException::everywhere(
            ['pooler:6432: no more connections allowed (max_client_conn) (08P01)'],
            '08P01',
        );
        self::assertTrue(TransientFailures::includes($full));
        self::assertFalse(TransientFailures::isUnreachable($full));
        self::assertTrue(TransientFailures::includes(ConnectionFailedException::everywhere(['refused'])));
        foreach ([
            [AttemptFailedException::unsuitable('the server is a standby'), true],
            [AttemptFailedException::uncorrectableSetting('array_nulls', 'on'), false],
            [AttemptFailedException::unsupportedVersion(), false],
        ] as [$cause, $isTransient]) {
            $failure = ConnectionFailedException::everywhere(['a reason'], previous: $cause);
            self::assertSame($isTransient, TransientFailures::includes($failure), $cause->getMessage());
            self::assertSame($isTransient, TransientFailures::isUnreachable($failure), $cause->getMessage());
        }
        self::assertFalse(TransientFailures::includes(new \RuntimeException()));
    }
}

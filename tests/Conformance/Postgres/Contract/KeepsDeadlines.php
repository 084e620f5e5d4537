<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres\Contract;

use Amp\Future;
use Spindle\Postgres\ConnectionLostException;
use Spindle\Postgres\PostgresConnection;
use Spindle\Postgres\QueryCancelledException;
use Spindle\Tests\Async;
use Spindle\Tests\Conformance\Postgres\ConnectionContract;
use Spindle\Tests\Postgres\Cluster;
use Spindle\Tests\Postgres\FaultyProxy;

/**
 * Tests time limits.
 *
 * @phpstan-require-extends ConnectionContract
 */
trait KeepsDeadlines
{
    public function testTheServerEndsAStatementThatTakesTooLong(): void
    {
        $connection = $this->connect(statementTimeout: 0.02);
        foreach ([
            static fn() => $connection->query('SELECT pg_sleep(1000)'),
            static fn() => iterator_to_array($connection->stream('SELECT pg_sleep(1000)')),
            static fn() => iterator_to_array($connection->copyTo('COPY (SELECT pg_sleep(1000)) TO STDOUT')),
            static fn() => $connection->executeScript('SELECT pg_sleep(1000)'),
        ] as $verb) {
            $thrown = self::thrown(QueryCancelledException::class, $verb);
            self::assertSame('57014', $thrown->sqlState);
            self::assertStringContainsString('statement timeout', $thrown->getMessage());
            self::assertUsable($connection);
        }
    }

    public function testAStatementThatIsOverdueDoesNotConcernOthers(): void
    {
        $connection = $this->connect(statementTimeout: 0.05);
        $late = Async::run(static fn(): mixed => $connection->query('SELECT pg_sleep(1000)'));
        $others = array_map(
            static fn(int $i): Future
                => Async::run(static fn(): mixed => $connection->query('SELECT $1::int', [$i])->value()),
            range(1, 5),
        );

        self::thrown(QueryCancelledException::class, $late->await(...));
        self::assertSame(range(1, 5), array_map(static fn(Future $other): mixed => $other->await(), $others));
    }

    public function testAServerThatIsSilentCountsAsLost(): void
    {
        $proxy = FaultyProxy::before(Cluster::shared());
        $connection = PostgresConnection::connect($this->throughProxy($proxy)->with(['readTimeout' => 0.1]));
        self::assertUsable($connection);
        $proxy->swallow();
        $futures = [
            Async::run(static fn(): mixed => $connection->query('SELECT 1')),
            Async::run(static fn(): mixed => $connection->query('SELECT 2')),
        ];
        foreach ($futures as $future) {
            self::assertStringContainsString(
                '0.1 s',
                self::thrown(ConnectionLostException::class, $future->await(...))->getMessage(),
            );
        }

        self::assertTrue($connection->isClosed());
        $thrown = self::thrown(ConnectionLostException::class, static fn() => $connection->query('SELECT 1'));
        self::assertStringContainsString('Nothing was sent', $thrown->getMessage());
        $proxy->stop();
    }

    public function testAnIdleConnectionMayBeSilent(): void
    {
        $connection = $this->connect(readTimeout: 0.25);
        self::assertUsable($connection);
        $this->connect()->query('SELECT pg_sleep(0.4)');
        self::assertUsable($connection);
        self::assertFalse($connection->isClosed());
    }

    public function testAServerThatSaysSomethingIsNotMistakenForLost(): void
    {
        $connection = $this->connect(readTimeout: 0.25);
        // The last row arrives after 0.5 s, with bytes in between.
        $rows = iterator_to_array($connection->stream(
            "SELECT repeat('x', 10000) AS x FROM generate_series(1, 100) AS i, LATERAL pg_sleep(0.005 + 0 * i)",
        ));

        self::assertCount(100, $rows);
    }
}

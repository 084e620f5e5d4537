<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Postgres;

use Revolt\EventLoop;
use Spindle\Postgres\PoolTimeoutException;
use Spindle\Postgres\PostgresConnection;
use Spindle\Postgres\PostgresLink;
use Spindle\Postgres\PostgresOptions;
use Spindle\Postgres\PostgresPool;
use Spindle\Postgres\PostgresPoolOptions;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\Conformance\Postgres\Gate;
use Spindle\Tests\Eventually;
use Spindle\Tests\Postgres\Cluster;
use Spindle\Tests\Postgres\FaultyProxy;
use Spindle\Tests\Postgres\UsesCluster;
use Spindle\Tests\TidyTestCase;

/** Tests that the transaction of a stream whose loop ends early is committed, or is reported. */
final class LeftStreamsTest extends TidyTestCase
{
    use CatchesThrown;
    use ComesToRest;
    use UsesCluster;

    private string $table;

    /** @var list<string> */
    private array $warnings = [];

    protected function setUp(): void
    {
        $this->table = 'left_' . bin2hex(random_bytes(4));
        Cluster::ask(<<<SQL
            CREATE TABLE {$this->table} (id int PRIMARY KEY, other int REFERENCES {$this->table} INITIALLY DEFERRED);
            CREATE FUNCTION {$this->table}(i int, seconds float) RETURNS int LANGUAGE plpgsql AS
                'BEGIN PERFORM pg_sleep(seconds); INSERT INTO {$this->table} VALUES (i); RETURN 1 / (77 - i); END'
            SQL);
    }

    protected function tearDown(): void
    {
        Cluster::ask("DROP TABLE {$this->table} CASCADE; DROP FUNCTION {$this->table}");
        $this->warnings = [];
    }

    public function testRowsThatAreBeingFetchedAreCommitted(): void
    {
        foreach ([PostgresConnection::connect(Cluster::shared()->dsn()), $this->pool()] as $link) {
            // The server needs half a second for row 60, which it fetches while the first 50 rows are read.
            $this->readFirstRow($link, "SELECT {$this->table}(i, CASE i WHEN 60 THEN 0.5 ELSE 0 END) "
                . 'FROM generate_series(1, 70) AS i');
            $link->close();
            self::assertSame(70, $this->countAndTruncate());
        }
        unset($link);
        self::assertSame([], $this->warnings);
    }

    public function testAWaitWithoutATimeLimitThatNothingCanEndIsReported(): void
    {
        $pool = new PostgresPool(Cluster::shared()->dsn(), 1, new PostgresPoolOptions(acquireTimeout: \INF));
        $rows = $pool->stream('SELECT generate_series(1, 10000) AS i');
        self::assertSame(['i' => 1], $rows->current());
        $failure = self::thrown(\Error::class, static fn() => $pool->query('SELECT 7'));

        self::assertStringStartsWith('Event loop terminated without resuming', $failure->getMessage());
        unset($rows);
        $pool->kill();
    }

    public function testUnreadStreamsInCyclesGiveTheirConnectionsToAWaitingCall(): void
    {
        gc_collect_cycles(); // so that PHP itself does not collect during the test
        foreach ([4.0, \INF] as $acquireTimeout) {
            $pool = new PostgresPool(
                Cluster::shared()->dsn(),
                2,
                new PostgresPoolOptions(acquireTimeout: $acquireTimeout),
            );
            foreach ([1, 2] as $number) {
                $cycle = new \stdClass();
                $cycle->self = $cycle;
                $cycle->rows = $pool->stream('SELECT generate_series(1, 10000) AS i');
                self::assertSame(['i' => 1], $cycle->rows->current());
                unset($cycle);
            }

            self::assertSame(7, $pool->query('SELECT 7')->value());
            $pool->close();
        }
    }

    public function testAnExceptionOfACollectedObjectGoesToTheErrorHandler(): void
    {
        $cycle = new class {
            public ?object $self = null;

            public function __destruct()
            {
                throw new \DomainException('from a destructor');
            }
        };
        $cycle->self = $cycle;
        $pool = new PostgresPool(
            Cluster::shared()->dsn(),
            1,
            new PostgresPoolOptions(acquireTimeout: 0.2),
        );
        $connection = $pool->acquire();
        $thrown = null;
        EventLoop::setErrorHandler(static function (\Throwable $failure) use (&$thrown): void {
            $thrown = $failure;
        });
        gc_collect_cycles();
        unset($cycle);
        try {
            for ($try = 0; $thrown === null && $try < 10; ++$try) {
                $failure = self::thrown(PoolTimeoutException::class, static fn() => $pool->query('SELECT 1'));
                self::assertStringContainsString('connections and generators of stream()', $failure->getMessage());
            }
        } finally {
            EventLoop::setErrorHandler(null);
        }
        self::assertInstanceOf(\DomainException::class, $thrown);
        $connection->release();
        $pool->close();
    }

    public function testReleasedAndUnreferencedConnectionsCommitFirst(): void
    {
        $insert = "INSERT INTO {$this->table} SELECT generate_series(1, 200) RETURNING id";
        $pool = $this->pool();
        $connection = $pool->acquire();
        $this->readFirstRow($connection, $insert);
        $connection->release();
        $pool->close();
        self::assertSame(200, $this->countAndTruncate());

        $connection = PostgresConnection::connect(Cluster::shared()->dsn());
        $this->readFirstRow($connection, $insert);
        unset($connection);
        Eventually::holds(
            fn(): bool => Cluster::ask("SELECT FROM {$this->table}") !== [],
            'the transaction is committed',
        );
        self::assertSame([], $this->warnings);
    }

    public function testACommitThatTheServerRefusesIsReported(): void
    {
        $this->readFirstRow($pool = $this->pool(), "INSERT INTO {$this->table} VALUES (1, 999) RETURNING id");
        $pool->close();

        self::assertSame(0, $this->countAndTruncate());
        $this->assertReported('foreign key constraint');
    }

    public function testAnErrorInARowThatIsNotReadIsReported(): void
    {
        $sql = "SELECT {$this->table}(i, 0) FROM generate_series(1, 100) AS i";
        $this->readFirstRow($pool = $this->pool(), $sql);
        $pool->close();

        self::assertSame(0, $this->countAndTruncate());
        $this->assertReported('a row that was not read caused an error');
    }

    public function testALossBeforeTheLoopIsLeftIsReported(): void
    {
        $proxy = FaultyProxy::before(Cluster::shared());
        $dsn = Cluster::shared()->tcpDsn(port: (string) $proxy->port, sslmode: 'disable');
        $pool = $this->pool($dsn);
        foreach ($pool->stream("INSERT INTO {$this->table} VALUES (1), (2) RETURNING id") as $_) {
            $proxy->close();
            Eventually::holds(static fn(): bool => $pool->statistics()['lost_total'] === 1, 'the loss is noticed');
            break;
        }
        $pool->close();
        $proxy->stop();

        $this->assertReported('The connection to PostgreSQL was lost');
    }

    public function testAStreamThatAKilledPoolEndsIsReported(): void
    {
        $pool = $this->pool();
        $gate = new Gate();
        $this->readFirstRow(
            $pool,
            "SELECT {$this->table}(i, 0), CASE WHEN i > 60 THEN {$gate->call()} END FROM generate_series(1, 70) AS i",
        );
        $gate->awaitStatements(1);
        $pool->kill();
        Eventually::holds(fn(): bool => $this->warnings !== [], 'it is reported');
        $gate->open();

        $this->assertReported('The pool of PostgreSQL connections is closed');
    }

    private function readFirstRow(PostgresLink $link, string $sql): void
    {
        foreach ($link->stream($sql) as $_) {
            break;
        }
    }

    private function countAndTruncate(): int
    {
        $count = Cluster::ask("SELECT count(*) FROM {$this->table}")[0]['count'];
        Cluster::ask("TRUNCATE {$this->table}");

        return (int) $count;
    }

    private function assertReported(string $reason): void
    {
        self::assertCount(1, $this->warnings, implode("\n", $this->warnings));
        self::assertStringStartsWith('A loop over stream() was left early, and the commit of', $this->warnings[0]);
        self::assertStringContainsString($reason, $this->warnings[0]);
    }

    private function pool(?string $dsn = null): PostgresPool
    {
        $warn = function (string $warning): void {
            $this->warnings[] = $warning;
        };

        return new PostgresPool(
            PostgresOptions::fromDsn($dsn ?? Cluster::shared()->dsn()),
            1,
            new PostgresPoolOptions(onWarning: $warn),
        );
    }
}

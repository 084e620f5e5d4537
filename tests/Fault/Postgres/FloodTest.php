<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Postgres;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use PHPUnit\Framework\Attributes\DataProvider;
use Spindle\Postgres\Notification;
use Spindle\Postgres\PostgresConnection;
use Spindle\Postgres\PostgresOptions;
use Spindle\Postgres\Testing\TemporaryPostgres;
use Spindle\Postgres\Testing\TemporaryPostgresOptions;
use Spindle\Postgres\TlsMode;
use Spindle\Tests\Async;
use Spindle\Tests\Eventually;
use Spindle\Tests\Postgres\Certificates;
use Spindle\Tests\Postgres\Cluster;
use Spindle\Tests\Postgres\Direction;
use Spindle\Tests\Postgres\FakeConnection;
use Spindle\Tests\Postgres\FaultyProxy;
use Spindle\Tests\Postgres\Message;
use Spindle\Tests\Postgres\Watchdog;
use Spindle\Tests\Scale;
use Spindle\Tests\TidyTestCase;

use function Amp\delay;

/** Tests more data than the reader takes: they stay with the sender, and memory does not grow. */
final class FloodTest extends TidyTestCase
{
    use ComesToRest;

    /** Bytes of additional memory that each of them may use. */
    private const MEMORY = 8 << 20;

    private static ?TemporaryPostgres $cluster = null;

    private int $memory = 0;

    public static function setUpBeforeClass(): void
    {
        $directory = sys_get_temp_dir() . '/spindle-test-' . bin2hex(random_bytes(6));
        mkdir($directory);
        [$certificate, $key] = (new Certificates($directory))->forServer('127.0.0.1');
        self::$cluster = Cluster::start(
            ['max_connections' => 20, 'fsync' => false],
            new TemporaryPostgresOptions(certificate: $certificate, key: $key),
        );
        $files = glob("{$directory}/*");
        array_map(unlink(...), $files === false ? [] : $files);
        rmdir($directory);
    }

    public static function tearDownAfterClass(): void
    {
        self::$cluster?->stop();
        self::$cluster = null;
    }

    /** @return iterable<string, array{TlsMode|null}> */
    public static function ways(): iterable
    {
        yield 'a Unix socket' => [null];
        yield 'TCP' => [TlsMode::Disable];
        yield 'TLS' => [TlsMode::Require];
    }

    #[DataProvider('ways')]
    public function testAFloodOfNoticesIsOnlyRead(?TlsMode $way): void
    {
        $connection = $this->connect($way);
        $this->lookAtMemory();
        $count = Scale::of(1_000_000);
        $gap = Watchdog::during(static function () use ($connection, $count): void {
            $connection->query(
                "DO $$ BEGIN FOR i IN 1..{$count} LOOP RAISE NOTICE 'notice % of a flood', i; END LOOP; END $$",
            );
        });

        $this->assertLittleMemory();
        self::assertLessThan(1.0, $gap, 'seconds that the loop stood still');
        $connection->executeScript(
            "DO $$ BEGIN FOR i IN 1..20 LOOP RAISE NOTICE '%', repeat('x', 1000000); END LOOP; END $$",
        );
        $this->assertLittleMemory();
        self::assertSame(1, $connection->query('SELECT 1')->value());
    }

    #[DataProvider('ways')]
    public function testAFloodOfNotificationsWaitsForASlowReader(?TlsMode $way): void
    {
        $count = Scale::of(500_000);
        $connection = $this->connect($way);
        $heard = $connection->listen('flood');
        $telling = Async::run(function () use ($count): void {
            $other = $this->connect(null);
            $listening = "SELECT FROM pg_stat_activity WHERE state = 'idle' AND query ILIKE 'LISTEN %flood%'";
            Eventually::holds(static fn(): bool => self::ask($listening) !== [], 'it listens');
            $other->query(
                "SELECT count(pg_notify('flood', i || ' ' || repeat('x', 500))) FROM generate_series(1, {$count}) AS i",
            );
        });
        $this->lookAtMemory();
        for ($number = 1; $number <= $count; ++$number) {
            if ($number > 1) {
                $heard->next();
            }
            $notification = $heard->current();
            if (!$notification instanceof Notification || !str_starts_with($notification->payload, "{$number} ")) {
                self::fail("The notification {$number} is missing");
            }
            if ($number % intdiv($count, 10) === 5) {
                delay(0.05);
                $this->assertLittleMemory();
            }
        }
        $telling->await();
        unset($heard);

        $this->assertLittleMemory();
        self::assertSame(1, $connection->query('SELECT 1')->value());
    }

    #[DataProvider('ways')]
    public function testUnreadRowsStayAtTheServer(?TlsMode $way): void
    {
        $connection = $this->connect($way);
        $rows = "SELECT i, repeat('x', 1000) FROM generate_series(1, 300000) AS i";
        foreach ([
            static fn(): \Generator => $connection->stream($rows),
            static fn(): \Generator => $connection->copyTo("COPY ({$rows}) TO STDOUT"),
        ] as $begin) {
            $transfer = $begin();
            $this->lookAtMemory();
            $number = 0;
            for (; $number < 50; ++$number, $transfer->next()) {
                self::assertTrue($transfer->valid());
            }
            self::awaitStandstill($connection->backendPid());
            $this->assertLittleMemory();
            for (; $number < Scale::of(300_000); ++$number, $transfer->next()) {
                $transfer->current();
            }
            $this->assertLittleMemory();
            unset($transfer);
        }

        self::assertSame(1, $connection->query('SELECT 1')->value());
        $this->assertLittleMemory();
    }

    #[DataProvider('ways')]
    public function testRowsOfAQueryThatWasCancelledAreThrownAway(?TlsMode $way): void
    {
        $connection = $this->connect($way);
        $cancellation = new DeferredCancellation();
        $this->lookAtMemory();
        // Another query is ahead, so that the cancelled one is not stopped at once.
        $others = Async::run(static fn(): mixed => $connection->query('SELECT pg_sleep(0.1)'));
        $outcome = Async::run(
            static fn(): mixed => Outcome::of(
                static fn(): mixed => $connection->query(
                    "SELECT repeat('x', 1000) FROM generate_series(1, 1000000)",
                    [],
                    $cancellation->getCancellation(),
                ),
            ),
        );
        delay(0.02);
        $cancellation->cancel();

        self::assertInstanceOf(CancelledException::class, $outcome->await());
        $others->await();
        self::assertSame(1, $connection->query('SELECT 1')->value());
        $this->assertLittleMemory();
    }

    public function testRowsOfAQueryThatWasCancelledAreThrownAwayForAsLongAsItCanNotBeStopped(): void
    {
        $cluster = self::$cluster ?? throw new \LogicException('There is no cluster');
        $proxy = FaultyProxy::before($cluster);
        $connection = PostgresConnection::connect($cluster->tcpDsn(port: (string) $proxy->port, sslmode: 'disable'));
        $connection->query('SELECT 1');
        $cancellation = new DeferredCancellation();
        $outcome = Async::run(
            static fn(): mixed => Outcome::of(
                static fn(): mixed => $connection->query(
                    "SELECT repeat('x', 1000) FROM generate_series(1, 40000)",
                    [],
                    $cancellation->getCancellation(),
                ),
            ),
        );
        $proxy->refuse();
        delay(0);
        $cancellation->cancel();
        self::assertInstanceOf(CancelledException::class, $outcome->await());
        $this->lookAtMemory();

        self::assertSame(2, $connection->query('SELECT 2')->value());
        self::assertGreaterThan(40_000_000, $proxy->passed(Direction::ToClient), 'all of it has come');
        $this->assertLittleMemory();
        unset($connection);
        $proxy->stop();
    }

    public function testAServerThatTalksWithoutEndIsOnlyRead(): void
    {
        $count = Scale::of(20_000);
        $server = Answers::server(static function (FakeConnection $client) use ($count): void {
            $client->readUntil('S');
            $asides = Message::noticeResponse('00000', str_repeat('n', 5000))
                . Message::notification(1, 'nobody', str_repeat('a', 5000))
                . Message::parameterStatus('TimeZone', str_repeat('z', 5000));
            for ($i = 0; $i < $count; ++$i) {
                $client->write($asides);
            }
            $client->write(Answers::first(['a' => Message::TEXT], ['done']));
            $client->readToEnd();
        });
        $connection = Answers::connect($server);
        $this->lookAtMemory();

        self::assertSame('done', $connection->query('SELECT')->value());
        $this->assertLittleMemory();
        unset($connection);
        $server->stop();
    }

    public function testAMessageThatIsAnnouncedAsLargeTakesMemoryOnlyAsItComes(): void
    {
        $server = Answers::server(static function (FakeConnection $client): void {
            $client->readUntil('S');
            $client->write(Message::parseComplete() . 'E' . pack('N', 0x4000_0000) . str_repeat('x', 1000));
            $client->stall();
        });
        $connection = Answers::connect($server);
        $this->lookAtMemory();
        $query = Async::run(static fn(): mixed => Outcome::of(static fn(): mixed => $connection->query('SELECT')));
        delay(0.05);
        $this->assertLittleMemory();
        $connection->kill();
        self::assertInstanceOf(\Throwable::class, $query->await());
        $server->stop();
    }

    public function testPiecesOfALargeAnswerAreNotCopiedAgainAndAgain(): void
    {
        $value = str_repeat('v', 24 << 20);
        $server = Answers::server(static function (FakeConnection $client) use ($value): void {
            $client->readUntil('S');
            foreach (str_split(Answers::first(['a' => Message::TEXT], [$value]), 1000) as $number => $piece) {
                $client->write($piece);
                if ($number % 20 === 0) {
                    delay(0);
                }
            }
            $client->readToEnd();
        });
        $connection = Answers::connect($server);
        $at = hrtime(true);

        $answer = $connection->query('SELECT')->value();
        self::assertIsString($answer);
        self::assertSame(md5($value), md5($answer));
        self::assertLessThan(20.0, (hrtime(true) - $at) / 1e9, 'it takes some 0.3 s');
        unset($connection);
        $server->stop();
    }

    public function testManyStatementsAndManyConnectionsLeaveNoMemoryBehind(): void
    {
        $round = function (int $number): void {
            $connection = $this->connect(null);
            for ($i = 0; $i < 300; ++$i) {
                $connection->query("SELECT {$number} + {$i} + \$1::int", [$i]);
                Outcome::of(static fn(): mixed => $connection->query("SELECT {$number} / 0 + {$i}"));
            }
            iterator_to_array($connection->stream('SELECT 1'));
            $connection->close();
        };
        $round(-2);
        $round(-1);
        gc_collect_cycles();
        $before = memory_get_usage();
        for ($number = 0; $number < Scale::of(50); ++$number) {
            $round($number);
        }
        unset($number);
        gc_collect_cycles();

        self::assertLessThan(300_000, memory_get_usage() - $before);
    }

    private function connect(?TlsMode $way): PostgresConnection
    {
        $cluster = self::$cluster ?? throw new \LogicException('There is no cluster');

        return PostgresConnection::connect(
            $way === null ? $cluster->dsn() : PostgresOptions::fromDsn($cluster->tcpDsn())->with(['tls' => $way]),
        );
    }

    /** Waits until the backend blocks, because it has no room for more rows or waits for a fetch. */
    private static function awaitStandstill(int $pid): void
    {
        $looks = 0;
        $stands = "SELECT FROM pg_stat_activity WHERE pid = {$pid}"
            . " AND (wait_event = 'ClientWrite' OR state LIKE 'idle in %')";
        Eventually::holds(static function () use (&$looks, $stands): bool {
            $looks = self::ask($stands) === [] ? 0 : $looks + 1;

            return $looks === 10;
        }, 'nothing more comes');
    }

    /** @return list<array<array-key, string|null>> */
    private static function ask(string $sql): array
    {
        $cluster = self::$cluster ?? throw new \LogicException('There is no cluster');

        return Cluster::ask($sql, $cluster->dsn());
    }

    private function lookAtMemory(): void
    {
        gc_collect_cycles();
        memory_reset_peak_usage();
        $this->memory = memory_get_usage();
    }

    private function assertLittleMemory(): void
    {
        self::assertLessThan(self::MEMORY, memory_get_peak_usage() - $this->memory, 'bytes');
    }
}

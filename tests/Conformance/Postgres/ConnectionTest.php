<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres;

use Amp\DeferredFuture;
use Amp\Future;
use Spindle\Postgres\Notification;
use Spindle\Postgres\PostgresConnection;
use Spindle\Postgres\PostgresHost;
use Spindle\Postgres\PostgresOptions;
use Spindle\Postgres\QueryCancelledException;
use Spindle\Tests\Async;
use Spindle\Tests\Fault\Postgres\FakeSession;
use Spindle\Tests\Postgres\Cluster;
use Spindle\Tests\Postgres\Direction;
use Spindle\Tests\Postgres\FakeConnection;
use Spindle\Tests\Postgres\FakeServer;
use Spindle\Tests\Postgres\FaultyProxy;
use Spindle\Tests\Postgres\Message;

final class ConnectionTest extends ConnectionContract
{
    use Contract\CopiesOut;

    public function testStatementsOfFibersAreSentWithoutWaitingForEachOthersAnswers(): void
    {
        $server = FakeServer::start(static function (FakeConnection $client): void {
            $client->welcome();
            for ($statements = 0; $statements < 10;) {
                [$type] = $client->read();
                match ($type) {
                    // the session is set up
                    'Q' => $client->write(Message::commandComplete('SELECT 0') . Message::readyForQuery()),
                    'S' => ++$statements,
                    default => null,
                };
            }
            for ($i = 0; $i < 10; ++$i) {
                $client->write(
                    Message::parseComplete()
                        . Message::parameterDescription()
                        . Message::rowDescription(['i' => Message::TEXT])
                        . Message::bindComplete()
                        . Message::dataRow("answer {$i}")
                            . Message::commandComplete('SELECT 1')
                            . Message::readyForQuery(),
                );
            }
            $client->readToEnd();
        });
        $connection = PostgresConnection::connect(PostgresOptions::fromDsn($server->dsn()));
        $futures = array_map(
            static fn(int $i): Future => Async::run(static fn(): mixed => $connection->query("SELECT {$i}")->value()),
            range(0, 9),
        );

        self::assertSame(
            array_map(static fn(int $i): string => "answer {$i}", range(0, 9)),
            array_map(static fn(Future $future): mixed => $future->await(), $futures),
        );
        unset($connection);
        $server->stop();
    }

    public function testAnAddressIsUsedInPlaceOfTheSocketInAFolder(): void
    {
        $proxy = FaultyProxy::before(Cluster::shared());
        $host = new PostgresHost('/none', $proxy->port, $proxy->host);
        $connection = PostgresConnection::connect($this->throughProxy($proxy)->with(['hosts' => [$host]]));

        self::assertSame([1, 1], [$connection->query('SELECT 1')->value(), $proxy->connections]);
        $connection->close();
        $proxy->stop();
    }

    /** Only visible on the wire, because a server ignores further CopyFail messages. */
    public function testACopyInAScriptIsRefusedOnce(): void
    {
        $proxy = FaultyProxy::before(Cluster::shared());
        $connection = PostgresConnection::connect($this->throughProxy($proxy));
        $table = self::table('i int');
        self::assertUsable($connection);
        $before = $proxy->passed(Direction::ToServer);
        $script = "COPY {$table} FROM STDIN";

        self::thrown(QueryCancelledException::class, static fn() => $connection->executeScript($script));
        self::assertSame(
            \strlen("Q____{$script}\0f____a script has no data\0"),
            $proxy->passed(Direction::ToServer) - $before,
        );
        $connection->close();
        $proxy->stop();
    }

    /** A server sends notifications before the end of a statement. */
    public function testManyNotificationsMayComeBeforeListenIsAnswered(): void
    {
        // More bytes than one read.
        $padding = str_repeat('x', 100);
        $notifications = array_map(
            static fn(int $i): string => Message::notification(1, 'news', $i . $padding),
            range(1, 3_000),
        );
        $server = FakeServer::start(static function (FakeConnection $client) use ($notifications): void {
            $client->welcome();
            for ($session = new FakeSession($client);;) {
                $command = (string) strtok($session->next(), ' ');
                $client->write($command === 'LISTEN' ? implode('', $notifications) : '');
                $session->complete($command);
            }
        });
        $connection = PostgresConnection::connect(PostgresOptions::fromDsn($server->dsn()));
        $future = Async::run(static function () use ($connection): array {
            $payloads = [];
            foreach ($connection->listen('news') as $received) {
                $payloads[] = $received instanceof Notification ? (int) $received->payload : -1;
                if (\count($payloads) === 3_000) {
                    break;
                }
            }

            return $payloads;
        });

        self::assertSame(range(1, 3_000), $future->await());
        unset($connection);
        $server->stop();
    }

    public function testNotificationsForASlowReaderStayAtTheServer(): void
    {
        $connection = $this->connect();
        /** @var DeferredFuture<null> $goOn */
        $goOn = new DeferredFuture();
        $future = Async::run(static function () use ($connection, $goOn): int {
            $sum = 0;
            foreach ($connection->listen('flood') as $received) {
                $goOn->getFuture()->await();
                $sum += $received instanceof Notification ? (int) $received->payload : 0;
                if ($sum === 8_002_000) {
                    return $sum;
                }
            }

            return 0;
        });
        $this->awaitListener('flood');
        $growth = self::growth(function (): void {
            Observer::ask("SELECT pg_notify('flood', i::text || repeat('x', 5000)) FROM generate_series(1, 4000) AS i");
            $this->connect()->query('SELECT pg_sleep(0.2)');
        });
        $goOn->complete();

        self::assertSame(8_002_000, $future->await());
        self::assertLessThan(10 << 20, $growth, 'half of it');
    }
}

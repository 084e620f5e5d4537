<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Postgres;

use PHPUnit\Framework\AssertionFailedError;
use Spindle\Tests\Eventually;
use Spindle\Tests\Host;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Postgres\Certificates;
use Spindle\Tests\Postgres\FakeConnection;
use Spindle\Tests\Postgres\FakeServer;
use Spindle\Tests\Postgres\Message;
use Spindle\Tests\Postgres\Wire;
use Spindle\Tests\TidyTestCase;

final class FakeServerTest extends TidyTestCase
{
    use OwnDirectory;

    private const STARTUP = "\0\0\0\x13\0\3\0\0user\0test\0\0";

    public function testAScriptReadsWhatAClientBeginsWithAndDeclinesEncryption(): void
    {
        $found = null;
        $server = FakeServer::start(static function (FakeConnection $connection) use (&$found): void {
            $found = [$connection->readStartup(), $connection->read(), $connection->expect('Q')];
        });
        $client = Wire::connect("tcp://{$server->host}:{$server->port}");

        $client->write("\0\0\0\x08\x04\xd2\x16\x2f");
        self::assertSame('N', $client->read());
        $client->write(self::STARTUP . Message::of('S') . Message::of('Q', "SELECT 1\0"));
        self::assertSame('', $client->read(), 'the script is done');
        self::assertSame([['user' => 'test'], ['S', ''], "SELECT 1\0"], $found);
        $server->stop();
    }

    public function testARealClientTakesItForAServer(): void
    {
        $server = FakeServer::startIn($this->path(), static function (FakeConnection $connection): void {
            $connection->welcome(pid: 77);
            $connection->expect('Q');
            $connection->write(
                Message::rowDescription(['one' => Message::INT4, 'none' => Message::TEXT]),
                Message::noticeResponse('01000', 'a notice'),
                Message::dataRow('1', null),
                Message::commandComplete('SELECT 1'),
                Message::readyForQuery(),
            );
            $connection->expect('Q');
            $connection->writeInPieces(
                Message::errorResponse('42P01', 'no such table', ['H' => 'a hint']) . Message::readyForQuery(),
            );
            $connection->expect('X');
        });
        $client = Host::start(self::class . '::client', [$server->dsn()]);
        Eventually::holds(static fn(): bool => !$client->isRunning(), 'the client is done');

        self::assertStringEndsWith(
            '[77,[{"one":"1","none":null}],"ERROR:  no such table\nHINT:  a hint"]',
            $client->getOutput(),
            $client->getErrorOutput(),
        );
        $server->stop();
    }

    /** @return list<mixed> */
    public static function client(string $dsn): array
    {
        $connection = pg_connect($dsn);
        \assert($connection !== false);
        $result = pg_query($connection, 'SELECT 1 AS one, NULL AS none');
        \assert($result !== false);
        @pg_query($connection, 'SELECT FROM nothing');

        return [pg_get_pid($connection), pg_fetch_all($result), trim(pg_last_error($connection))];
    }

    public function testEachClientHasAScriptOfItsOwnAndTheLastOneIsForAllOthers(): void
    {
        $server = FakeServer::start(
            static fn(FakeConnection $connection) => $connection->write('first'),
            static fn(FakeConnection $connection) => $connection->write("other {$connection->number}"),
        );
        $said = array_map(
            static fn(int $_): string => Wire::connect("tcp://{$server->host}:{$server->port}")->read(),
            range(1, 3),
        );

        self::assertSame(['first', 'other 1', 'other 2'], $said);
        self::assertSame(3, $server->connections);
        $server->stop();
    }

    public function testItTalksTls(): void
    {
        $authority = new Certificates($this->path());
        $files = $authority->forServer('localhost');
        $server = FakeServer::start(static function (FakeConnection $connection) use ($files): void {
            self::assertSame(FakeConnection::SSL_REQUEST, $connection->readRequest()[0]);
            self::assertTrue($connection->startTls(...$files));
            $connection->welcome(pid: 78);
            $connection->expect('X');
        });
        $dsn = $server->dsn(
            host: 'localhost',
            hostaddr: '127.0.0.1',
            sslmode: 'verify-full',
            sslrootcert: $authority->authority,
        );
        $client = Host::start(self::class . '::connect', [$dsn]);
        Eventually::holds(static fn(): bool => !$client->isRunning(), 'the client is done');

        self::assertStringEndsWith('78', $client->getOutput(), $client->getErrorOutput());
        $server->stop();
    }

    public static function connect(string $dsn): int
    {
        $connection = pg_connect($dsn);

        return $connection === false ? 0 : pg_get_pid($connection);
    }

    public function testAResetIsNoOrderlyEnd(): void
    {
        $server = FakeServer::start(static fn(FakeConnection $connection) => $connection->reset());
        $client = stream_socket_client("tcp://{$server->host}:{$server->port}");
        self::assertNotFalse($client);
        Eventually::holds(
            static fn(): bool => $server->connections === 1 && $server->running() === 0,
            'the script is done',
        );
        $socket = socket_import_stream($client);
        self::assertNotFalse($socket);

        self::assertFalse(@socket_read($socket, 1));
        self::assertSame(\SOCKET_ECONNRESET, socket_last_error($socket));
        $server->stop();
    }

    public function testAScriptThatStallsGoesOnWhenTheServerIsStopped(): void
    {
        $done = false;
        $server = FakeServer::start(static function (FakeConnection $connection) use (&$done): void {
            $connection->stall();
            $done = true;
        });
        $client = Wire::connect("tcp://{$server->host}:{$server->port}");
        $client->write('what nobody reads');
        Eventually::holds(static fn(): bool => $server->running() === 1, 'the script runs');

        $server->stop();

        self::assertTrue($done);
        self::assertSame('', $client->read());
    }

    public function testWhatAScriptThrowsIsThrownByStopUnlessTheClientHasHungUp(): void
    {
        $server = FakeServer::start(
            static fn(FakeConnection $connection): string => $connection->readBytes(1),
            static function (FakeConnection $connection): void {
                self::fail("client {$connection->number} is unwanted");
            },
        );
        Wire::connect("tcp://{$server->host}:{$server->port}")->close();
        self::assertSame('', Wire::connect("tcp://{$server->host}:{$server->port}")->read());

        $this->expectException(AssertionFailedError::class);
        $this->expectExceptionMessage('client 1 is unwanted');
        $server->stop();
    }
}

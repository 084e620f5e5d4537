<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Postgres;

use Spindle\Tests\Eventually;
use Spindle\Tests\Host;
use Spindle\Tests\Postgres\Cluster;
use Spindle\Tests\Postgres\Direction;
use Spindle\Tests\Postgres\FakeConnection;
use Spindle\Tests\Postgres\FakeServer;
use Spindle\Tests\Postgres\FaultyProxy;
use Spindle\Tests\Postgres\UsesCluster;
use Spindle\Tests\Postgres\Wire;
use Spindle\Tests\TidyTestCase;

use function Amp\delay;

final class FaultyProxyTest extends TidyTestCase
{
    use UsesCluster;

    private FakeServer $server;
    private FaultyProxy $proxy;
    private string $received = '';

    protected function setUp(): void
    {
        // Echoes its input, and keeps it.
        $this->server = FakeServer::start(function (FakeConnection $connection): void {
            while (($bytes = $connection->wire->read()) !== '') {
                $this->received .= $bytes;
                $connection->write($bytes);
            }
        });
        $this->proxy = new FaultyProxy("tcp://{$this->server->host}:{$this->server->port}");
    }

    protected function tearDown(): void
    {
        $this->proxy->stop();
        $this->server->stop();
        unset($this->proxy, $this->server);
    }

    public function testByItselfItPassesOnWhatItGets(): void
    {
        $client = $this->connect();
        $bytes = random_bytes(1_000_000);
        $back = '';
        $client->write($bytes);
        $client->finish();
        while (($piece = $client->read()) !== '') {
            $back .= $piece;
        }

        self::assertSame(hash('xxh128', $bytes), hash('xxh128', $back));
        self::assertSame(
            [1_000_000, 1_000_000],
            [$this->proxy->passed(Direction::ToServer), $this->proxy->passed(Direction::ToClient)],
        );
        self::assertSame(1, $this->proxy->connections);
        Eventually::holds(fn(): bool => $this->proxy->open() === 0, 'the connection is closed on both sides');
    }

    public function testItSlices(): void
    {
        $this->proxy->slice(1);
        self::assertSame(['a', 'b', 'c', 'd', 'e'], $this->pieces($this->connect(), 'abcde'));
    }

    public function testItSlicesAtRandomTheSameWayEachTime(): void
    {
        $bytes = random_bytes(200);
        $sizes = [];
        for ($i = 0; $i < 2; ++$i) {
            $this->proxy->sliceRandomly(10, seed: 5);
            $sizes[] = array_map(\strlen(...), $this->pieces($this->connect(), $bytes));
        }

        self::assertSame(200, array_sum($sizes[0]));
        self::assertSame($sizes[0], array_filter($sizes[0], static fn(int $size): bool => $size <= 10));
        self::assertGreaterThan(1, \count(array_unique($sizes[0])));
    }

    public function testItDelays(): void
    {
        $this->proxy->delay(0.05);
        $start = hrtime(true);
        self::assertSame('slow', implode('', $this->pieces($this->connect(), 'slow')));
        self::assertGreaterThanOrEqual(0.1, (hrtime(true) - $start) / 1e9);
    }

    public function testWhatItSwallowsVanishesAndSoDoesAnEnd(): void
    {
        $client = $this->connect();
        self::assertSame(['before'], $this->pieces($client, 'before'));

        $this->proxy->swallow();
        $client->write('vanished');
        delay(0.02);
        $this->server->stop();
        delay(0.02);

        self::assertSame('before', $this->received);
        self::assertSame(1, $this->proxy->open(), 'the client knows nothing of it');
        $client->close();
        Eventually::holds(fn(): bool => $this->proxy->open() === 0, 'both sides are closed');
    }

    public function testWhatComesDuringAPauseComesAfterIt(): void
    {
        $client = $this->connect();
        $this->proxy->pause();
        $client->write('later');
        delay(0.02);
        self::assertSame('', $this->received);

        $this->proxy->resume();
        self::assertSame('later', $client->read());
    }

    public function testAPauseFillsTheBuffers(): void
    {
        $client = stream_socket_client("tcp://{$this->proxy->host}:{$this->proxy->port}");
        self::assertNotFalse($client);
        stream_set_blocking($client, false);
        $this->proxy->pause();
        $total = 0;
        while (($written = (int) fwrite($client, str_repeat('x', 65_536))) > 0) {
            $total += $written;
            delay(0);
        }

        self::assertGreaterThan(65_536, $total);
        fclose($client);
    }

    public function testItClosesAfterExactlySoManyBytes(): void
    {
        $this->proxy->closeAfter(3, Direction::ToServer);
        $client = $this->connect();
        $client->write('abcdef');

        self::assertSame('', $client->read());
        Eventually::holds(fn(): bool => $this->received === 'abc', 'three bytes have come');
        self::assertSame(0, $this->proxy->open());
    }

    public function testItResetsAfterExactlySoManyBytes(): void
    {
        $this->proxy->resetAfter(2, Direction::ToClient);
        $client = stream_socket_client("tcp://{$this->proxy->host}:{$this->proxy->port}");
        self::assertNotFalse($client);
        fwrite($client, 'abcdef');
        Eventually::holds(fn(): bool => $this->proxy->connections === 1 && $this->proxy->open() === 0, 'it is cut');
        $socket = socket_import_stream($client);
        self::assertNotFalse($socket);

        self::assertSame(2, $this->proxy->passed(Direction::ToClient));
        self::assertSame('ab', socket_read($socket, 10));
        self::assertFalse(@socket_read($socket, 10));
        self::assertSame(\SOCKET_ECONNRESET, socket_last_error($socket));
    }

    public function testItClosesWhatIsOpenAndTakesWhatComesThen(): void
    {
        foreach ([$this->proxy->close(...), $this->proxy->reset(...)] as $end) {
            $client = $this->connect();
            self::assertSame(['one'], $this->pieces($client, 'one'));
            $end();
            self::assertSame('', $client->read());
        }
        self::assertSame(['two'], $this->pieces($this->connect(), 'two'));
    }

    public function testItRefuses(): void
    {
        $this->proxy->refuse();
        self::assertSame('', $this->connect()->read());
        $this->proxy->resume();
        self::assertSame(['yes'], $this->pieces($this->connect(), 'yes'));
    }

    public function testARealClientAndARealServerTalkThroughIt(): void
    {
        $proxy = FaultyProxy::before(Cluster::shared());
        $proxy->sliceRandomly(20);
        $client = Host::start(self::class . '::ask', [Cluster::shared()->tcpDsn(port: (string) $proxy->port)]);
        Eventually::holds(static fn(): bool => !$client->isRunning(), 'the client is done', 20.0);

        self::assertStringEndsWith(
            json_encode(md5(str_repeat('x', 5000)), \JSON_THROW_ON_ERROR),
            $client->getOutput(),
            $client->getErrorOutput(),
        );
        self::assertGreaterThan(5000, $proxy->passed(Direction::ToClient));
        $proxy->stop();
    }

    public static function ask(string $dsn): string
    {
        return md5(Cluster::ask("SELECT repeat('x', 5000) AS x", $dsn)[0]['x'] ?? '');
    }

    private function connect(): Wire
    {
        return Wire::connect("tcp://{$this->proxy->host}:{$this->proxy->port}");
    }

    /** @return list<string> bytes that come back, by read */
    private function pieces(Wire $client, string $bytes): array
    {
        $client->write($bytes);
        $pieces = [];
        for ($missing = \strlen($bytes); $missing > 0; $missing -= \strlen($piece)) {
            $pieces[] = $piece = $client->read();
        }

        return $pieces;
    }
}

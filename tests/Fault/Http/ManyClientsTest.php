<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Http;

use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\Attributes\TestWith;
use Revolt\EventLoop\DriverFactory;
use Spindle\Http\HttpServerOptions;
use Spindle\Tests\Async;
use Spindle\Tests\Eventually;
use Spindle\Tests\Http\RawClient;
use Spindle\Tests\Http\ServerProcess;
use Spindle\Tests\Http\StartsServers;
use Spindle\Tests\Locale;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Scale;
use Spindle\Tests\Streams;
use Spindle\Tests\TidyTestCase;

use function Amp\delay;
use function Amp\Future\await;

/** More clients than a process has descriptors for. */
final class ManyClientsTest extends TidyTestCase
{
    use OwnDirectory;
    use StartsServers;

    private const FULL = 'No more than 900 connections can be open';

    /** A request that is unanswered until its client leaves. */
    private const BUSY = "POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n";

    /** @var list<resource> clients that only keep their connections open */
    private array $idle = [];

    protected function deadline(): int
    {
        return 180;
    }

    protected function tearDown(): void
    {
        array_map(fclose(...), $this->idle);
        $this->idle = [];
    }

    public function testMoreClientsThanStreamSelectSupportsWaitUntilOthersDisconnect(): void
    {
        if ((new DriverFactory())->create()->getHandle() !== null) {
            self::markTestSkipped('The event loop of this machine has no such limit');
        }
        self::needDescriptors(1_400);
        $server = $this->startServer(
            options: new HttpServerOptions(headTimeout: 600, minBodyRate: 0, maxConnectionsPerAddress: 5_000),
            limits: 'ulimit -n 2048',
        );
        $this->connect($server, 700, self::BUSY);
        $this->connect($server, 199);
        Eventually::holds(static fn(): bool => $server->descriptors() > 900, 'all are taken', 20);
        delay(0.6); // idle time of the other connections
        self::assertSame('hello from /', $this->ask($server, '/'));
        $reserved = Streams::open('/dev/null', 'r'); // for a low number, which the client gets that is watched here
        $this->connect($server, 400, self::BUSY);
        Eventually::holds(static fn(): bool => $server->log() !== [], 'it says that it is full', 20);
        fclose($reserved);
        $late = $server->client()->get('/late');
        self::assertIdle($server, $late);

        self::assertFalse(stream_socket_recvfrom($late->stream(), 1, \STREAM_PEEK), 'others wait');
        self::assertLessThan(1_024, $server->descriptors());
        $this->disconnect(700);

        self::assertSame('hello from /late', $late->response()->body);
        // A busy machine may also have a warning about code that blocked the event loop.
        $warnings = array_values(array_filter(
            $server->log(),
            static fn(string $line): bool => str_starts_with($line, self::FULL),
        ));
        self::assertCount(1, $warnings, 'the warning is logged once');
        self::assertStringContainsString('ev, event and uv', $warnings[0]);
    }

    public function testIdleConnectionsOfOneAddressCanNotShutOutOtherClients(): void
    {
        self::needDescriptors(1_400);
        $server = $this->startServer(limits: 'ulimit -n 2048');
        for ($i = 0; $i < 1_100; ++$i) {
            $this->connect($server, 1, "GET /{$i} HTTP/1.1\r\nHost: a\r\n\r\n");
            if ($i % 50 === 0) {
                delay(0.01);
            }
        }
        delay(0.6);
        for ($i = 0; $i < 200; ++$i) {
            self::assertSame("hello from /{$i}", $this->ask($server, "/{$i}"));
        }
    }

    public function testTheServerRecoversFromAFullDescriptorTable(): void
    {
        $server = $this->startServer(
            options: new HttpServerOptions(headTimeout: 600, minBodyRate: 0, maxConnectionsPerAddress: 5_000),
            limits: 'ulimit -n 28',
        );
        $this->connect($server, 60, self::BUSY);
        Eventually::holds(static fn(): bool => $server->log() !== [], 'it says that it is full', 20);
        $late = $server->client()->get('/late');
        self::assertIdle($server, $late);
        $this->disconnect(60);

        self::assertSame('hello from /late', $late->response()->body);
        self::assertSame(
            [
                'No connection can be accepted, because too many files are open.'
                    . ' Raise the limit of descriptors (ulimit -n)',
            ],
            $server->log(),
        );
    }

    public function testIdleConnectionsMakeRoomWhenNoDescriptorIsFree(): void
    {
        $server = $this->startServer(
            options: new HttpServerOptions(headTimeout: 600, maxConnectionsPerAddress: 5_000),
            limits: 'ulimit -n 28',
        );
        $this->connect($server, 28);

        self::assertSame('hello from /late', $this->ask($server, '/late'));
    }

    #[RequiresPhpExtension('gettext')]
    public function testIdleConnectionsMakeRoomWhenTheApplicationHasTranslatedTheMessagesOfTheSystem(): void
    {
        $translating = Locale::translating($this->path(), 'Too many open files', 'Zu viele offene Dateien');
        $server = $this->startServer(
            options: new HttpServerOptions(headTimeout: 600, maxConnectionsPerAddress: 5_000),
            limits: 'ulimit -n 28',
            php: ['-d', "auto_prepend_file={$this->file('locale.php', "<?php {$translating}")}"],
        );
        $this->connect($server, 28);

        self::assertSame('hello from /late', $this->ask($server, '/late'));
    }

    /** Nothing but the listening socket keeps the event loop of this server running. */
    public function testAServerWithoutConnectionsSurvivesAFullDescriptorTable(): void
    {
        $server = $this->startServer(limits: 'ulimit -n 64');
        $first = $server->client()->get('/files?3', "Connection: close\r\n");
        self::assertSame(['soon', true], [$first->response()->body, $first->isEnded()]);
        $first->close();
        // Before classes are loaded, the server releases descriptors. Then the application opens these, too.
        Eventually::standsStill(static fn(): int => $server->descriptors(), 'all descriptors are in use');
        self::assertSame(64, $server->descriptors());

        self::assertSame('hello from /late', $this->ask($server, '/late'));
        self::assertStringContainsString('too many files are open', implode("\n", $server->log()));
    }

    #[TestWith(["GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400])]
    #[TestWith(["GET /throw HTTP/1.1\r\nHost: a\r\n\r\n", 500])]
    #[TestWith(["POST /body HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", 200])]
    public function testARequestWhoseClassesAreNotLoadedIsAnsweredWhenNoOtherDescriptorIsFree(
        string $request,
        int $status,
    ): void {
        $server = $this->startServer(limits: 'ulimit -n 64');
        $client = $server->client();
        self::assertSame('hello from /', $client->get('/')->response()->body);
        self::assertSame('soon', $server->client()->get('/files?30')->response()->body);
        Eventually::holds(static fn(): bool => $server->descriptors() === 64, 'all descriptors are in use');

        self::assertSame($status, $client->send($request)->response()->status);
        self::assertStringNotContainsString('not found', implode("\n", $server->log()));
    }

    public function testClientsWhoseHeadsNeverEndAreClosedWhileOthersAreServed(): void
    {
        $server = $this->startServer(options: new HttpServerOptions(headTimeout: 2, maxConnectionsPerAddress: 5_000));
        $slow = array_map(
            static fn(): RawClient => $server->client()->send("GET / HTTP/1.1\r\nHost: a\r\n"),
            range(1, Scale::of(500)),
        );
        $refusals = array_map(static fn(RawClient $client) => Async::run(static function () use ($client): int {
            foreach (['X', ':', 'y', "\r\n"] as $bytes) {
                delay(0.2); // the client is slow
                $client->send($bytes);
            }

            return $client->response()->status;
        }), $slow);
        $evicted = Async::run(static fn(): array => await($refusals));
        $healthy = $server->client();
        $served = 0;
        for (; !$evicted->isComplete(); ++$served) {
            self::assertSame('hello from /', $healthy->get('/')->response()->body);
            delay(0.01);
        }

        self::assertSame([408 => \count($slow)], array_count_values($evicted->await()));
        self::assertGreaterThan(20, $served);
        array_map(static fn(RawClient $client) => $client->close(), $slow);
        Eventually::holds(static fn(): bool => $server->descriptors() < 20, 'nothing of them is left', 15);
    }

    private static function needDescriptors(int $count): void
    {
        $limit = \function_exists('posix_getrlimit') ? posix_getrlimit()['soft openfiles'] ?? 0 : 0;
        if ($limit !== 'unlimited' && $limit < $count) {
            self::markTestSkipped("The test takes {$count} descriptors: ulimit -n");
        }
    }

    /** Sends a request without the event loop, which may support no more descriptors here than in the server. */
    private function ask(ServerProcess $server, string $target): string
    {
        $client = stream_socket_client($server->address, $code, $message, 10);
        self::assertNotFalse($client, (string) $message);
        stream_set_timeout($client, 10);
        fwrite($client, "GET {$target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        $response = (string) stream_get_contents($client);
        fclose($client);

        return explode("\r\n\r\n", $response, 2)[1] ?? 'no answer';
    }

    private function connect(ServerProcess $server, int $count, string $request = ''): void
    {
        for ($i = 0; $i < $count; ++$i) {
            $client = stream_socket_client($server->address, $code, $message, 0, \STREAM_CLIENT_ASYNC_CONNECT);
            self::assertNotFalse($client, (string) $message);
            stream_set_blocking($client, false);
            fwrite($client, $request);
            $this->idle[] = $client;
        }
    }

    private function disconnect(int $count): void
    {
        array_map(fclose(...), array_splice($this->idle, 0, $count));
    }

    /** Checks that a server whose other clients only wait uses almost no CPU time. */
    private static function assertIdle(ServerProcess $server, RawClient $waiting): void
    {
        $before = $server->cpu();
        delay(1.0); // period of measurement
        self::assertLessThan(0.5, $server->cpu() - $before, 'it does not try again and again');
        self::assertFalse(stream_socket_recvfrom($waiting->stream(), 1, \STREAM_PEEK), 'it waits');
    }
}

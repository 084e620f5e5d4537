<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Http\Server;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\RequiresOperatingSystemFamily;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use Psr\Http\Message\ServerRequestInterface;
use Spindle\Http\HttpServer;
use Spindle\Http\HttpServerOptions;
use Spindle\Http\Internal\Server\Listeners;
use Spindle\Http\ListenException;
use Spindle\Http\Response;
use Spindle\Tests\Eventually;
use Spindle\Tests\Http\HttpServerTestCase;
use Spindle\Tests\Http\RawClient;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Processes;
use Spindle\Tests\Streams;

/** Addresses on which a server listens. */
final class AddressesTest extends HttpServerTestCase
{
    use OwnDirectory;

    public function testAServerListensOnIpv6(): void
    {
        if (@stream_socket_server('tcp://[::1]:0') === false) {
            self::markTestSkipped('This machine has no IPv6');
        }
        $this->serve(self::peer(...), address: '[::1]:0');

        self::assertMatchesRegularExpression('~^tcp://\[::1\]:[1-9]\d*$~D', $this->address);
        self::assertSame(['::1', '::1'], $this->client()->get('/')->response()->json());
    }

    public function testAServerListensOnAUnixSocketAndRemovesItsFile(): void
    {
        $path = $this->path('server.sock');
        $this->serve(self::peer(...), new HttpServerOptions(maxConnectionsPerAddress: 1), "unix://{$path}");

        self::assertSame("unix://{$path}", $this->address);
        [$one, $other] = [$this->client(), $this->client()];
        self::assertSame(['unix:', 'unix:'], $one->get('/')->response()->json());
        self::assertSame(
            ['unix:', 'unix:'],
            $other->get('/')->response()->json(),
            'its clients have no address to be counted by',
        );
        self::assertFileExists($path);
        $this->server()->kill();
        self::assertFileDoesNotExist($path);
    }

    public function testAUnixSocketThatAKilledServerLeftIsReplaced(): void
    {
        $path = $this->path('server.sock');
        fclose(self::unixServer($path));
        self::assertFileExists($path);
        $this->serve(self::peer(...), address: "unix://{$path}");

        self::assertSame(200, $this->client()->get('/')->response()->status);
    }

    public function testAUnixSocketOfARunningServerIsNotReplaced(): void
    {
        $path = $this->path('server.sock');
        $other = self::unixServer($path);

        self::assertStringContainsString('already in use', self::refusal("unix://{$path}")->getMessage());
        self::assertFileExists($path);
        fclose($other);
    }

    public function testAFileThatIsNotASocketIsNotReplaced(): void
    {
        $path = $this->file('precious', 'data');

        self::assertSame(
            "The server can't listen on unix://{$path}: {$path} already exists, and is not a socket but a file",
            self::refusal("unix://{$path}")->getMessage(),
        );
        self::assertSame('data', file_get_contents($path));
    }

    public function testAUnixSocketOfAServerWithAFullQueueIsNotReplaced(): void
    {
        $path = $this->path('server.sock');
        $other = stream_socket_server("unix://{$path}", context: stream_context_create(['socket' => ['backlog' => 0]]));
        self::assertNotFalse($other);
        $inode = fileinode($path);
        $waiting = [];
        while (($client = @stream_socket_client("unix://{$path}", timeout: 1)) !== false) {
            $waiting[] = $client;
        }

        self::assertStringContainsString('already in use', self::refusal("unix://{$path}")->getMessage());
        self::assertSame($inode, fileinode($path));
        array_map(fclose(...), [$other, ...$waiting]);
    }

    public function testASocketOfAnotherKindIsNotReplaced(): void
    {
        $path = $this->path('log.sock');
        $other = stream_socket_server("udg://{$path}", flags: \STREAM_SERVER_BIND);
        self::assertNotFalse($other);

        self::assertStringEndsWith(
            "{$path} already exists, and its server could not be reached: protocol wrong type for socket",
            self::refusal("unix://{$path}")->getMessage(),
        );
        self::assertFileExists($path);
        fclose($other);
    }

    public function testAUnixSocketOfALaterServerIsNotRemoved(): void
    {
        $path = $this->path('server.sock');
        $first = $this->servers[] = new HttpServer(self::peer(...));
        $first->start("unix://{$path}");
        unlink($path);
        $this->serve(self::peer(...), address: "unix://{$path}");

        $first->kill();
        self::assertSame(200, $this->client()->get('/')->response()->status);
        $this->server()->kill();
        self::assertFileDoesNotExist($path);
    }

    public function testAUnixSocketOfAnotherProcessIsNotRemoved(): void
    {
        $path = $this->path('server.sock');
        $this->serve(self::peer(...), address: "unix://{$path}");
        unlink($path);
        $other = self::unixServer($path);

        $this->server()->kill();
        self::assertFileExists($path);
        fclose($other);
    }

    #[RequiresPhpExtension('pcntl')]
    public function testAUnixSocketIsNotRemovedByAFork(): void
    {
        $path = $this->path('server.sock');
        $this->serve(self::peer(...), address: "unix://{$path}");
        $fork = pcntl_fork();
        if ($fork === 0) {
            $this->server()->kill();
            posix_kill((int) getmypid(), \SIGKILL);
        }
        pcntl_waitpid($fork, $status);

        self::assertFileExists($path);
        self::assertSame(200, $this->client()->get('/')->response()->status);
    }

    public function testATooLongPathOfAUnixSocketIsReported(): void
    {
        $longest = str_pad($this->path('x'), 107, 'x');
        $this->serve(self::peer(...), address: "unix://{$longest}");
        self::assertSame(200, $this->client()->get('/')->response()->status);

        self::assertSame(
            "The server can't listen on unix://{$longest}x: the path of a Unix socket has at most 107 bytes,"
                . ' and this one has 108',
            self::refusal("unix://{$longest}x")->getMessage(),
        );
    }

    public function testAMissingFolderIsReported(): void
    {
        $file = $this->file('file', '');

        self::assertSame(
            "The server can't listen on unix:///nowhere/x.sock: /nowhere is not an existing folder",
            self::refusal('unix:///nowhere/x.sock')->getMessage(),
        );
        self::assertStringEndsWith(
            "{$file} is not an existing folder",
            self::refusal("unix://{$file}/x.sock")->getMessage(),
        );
    }

    #[RequiresPhpExtension('FFI')]
    public function testAProgramThatAHandlerHasStartedDoesNotKeepTheAddress(): void
    {
        $path = $this->path('server.sock');
        $server = $this->servers[] = new HttpServer(self::peer(...));
        [$address] = $server->start('127.0.0.1:0', "unix://{$path}");
        $background = proc_open(
            ['sleep', '60'],
            [['file', '/dev/null', 'r'], ['file', '/dev/null', 'w'], ['file', '/dev/null', 'w']],
            $pipes,
        );
        self::assertNotFalse($background);
        $pid = proc_get_status($background)['pid'];
        Eventually::holds(
            static fn(): bool => str_starts_with(Processes::commandLine($pid), 'sleep'),
            'it is no longer a copy of this process',
        );
        $server->kill();

        try {
            self::assertFalse(Streams::accepts($address), 'no server listens');
            self::assertSame([$address], ($this->servers[] = new HttpServer(self::peer(...)))->start($address));
        } finally {
            proc_terminate($background, \SIGKILL);
            proc_close($background);
        }
    }

    public function testAServerListensOnSeveralAddresses(): void
    {
        $server = $this->servers[] = new HttpServer(self::peer(...));
        $path = $this->path('server.sock');
        $addresses = $server->start('127.0.0.1:0', '127.0.0.1:0', "unix://{$path}");

        self::assertCount(3, array_unique($addresses));
        foreach ($addresses as $address) {
            $client = $this->clients[] = RawClient::connect($address);
            self::assertSame(200, $client->get('/')->response()->status);
        }
        self::assertSame(3, $server->statistics()->acceptedConnections);
    }

    public function testAddressesCanBeAddedLater(): void
    {
        $server = $this->servers[] = new HttpServer(self::peer(...));
        $server->start("unix://{$this->path('first.sock')}");
        $server->start("unix://{$this->path('second.sock')}");
        $server->kill();

        self::assertFileDoesNotExist($this->path('first.sock'));
        self::assertFileDoesNotExist($this->path('second.sock'));
    }

    #[RequiresPhpExtension('sockets')]
    #[RequiresOperatingSystemFamily('Linux')]
    public function testConnectionsHaveTcpKeepalive(): void
    {
        foreach (Listeners::open(['127.0.0.1:0'], new HttpServerOptions()) as $address => $socket) {
            $client = RawClient::connect($address);
            $stream = stream_socket_accept($socket);
            self::assertNotFalse($stream);
            $connection = socket_import_stream($stream);
            self::assertNotFalse($connection);

            self::assertSame(1, socket_get_option($connection, \SOL_SOCKET, \SO_KEEPALIVE));
            self::assertSame(60, socket_get_option($connection, \SOL_TCP, \TCP_KEEPIDLE));
            $client->close();
        }
    }

    public function testAPortInUseIsReported(): void
    {
        $other = Streams::server();
        $address = (string) stream_socket_get_name($other, false);

        $refusal = self::refusal($address);
        self::assertSame($address, $refusal->address);
        self::assertSame(
            "The server can't listen on {$address}: address already in use. Another program listens there:"
                . ' stop it, or choose another address',
            $refusal->getMessage(),
        );
    }

    public function testNoAddressStaysOpenIfOneIsInUse(): void
    {
        $other = Streams::server();
        $path = $this->path('server.sock');

        self::assertStringContainsString(
            'already in use',
            self::refusal(
                "unix://{$path}",
                '127.0.0.1:0',
                (string) stream_socket_get_name($other, false),
            )->getMessage(),
        );
        self::assertFileDoesNotExist($path);
    }

    /** @return iterable<string, array{string}> */
    public static function malformed(): iterable
    {
        foreach ([
            '',
            '8080',
            ':8080',
            '127.0.0.1',
            '127.0.0.1:',
            '127.0.0.1:http',
            'http://127.0.0.1:80',
            '::1:8080',
            '127.0.0.1:80/path',
            "127.0.0.1:80\n",
            'unix://',
            'udp://127.0.0.1:80',
            '127.0.0.1:65536',
            '127.0.0.1:100000',
        ] as $address) {
            yield "\"{$address}\"" => [$address];
        }
    }

    #[DataProvider('malformed')]
    public function testAMalformedAddressIsReported(string $address): void
    {
        self::assertSame(
            "\"{$address}\" is not an address to listen on. Use host:port, [IPv6]:port,"
                . ' tls://host:port or unix:///path',
            self::refusal($address)->getMessage(),
        );
    }

    public function testAForeignAddressIsReported(): void
    {
        self::assertStringStartsWith(
            "The server can't listen on 192.0.2.1:0: ",
            self::refusal('192.0.2.1:0')->getMessage(),
        );
    }

    public function testTlsWithoutACertificateIsReported(): void
    {
        self::assertStringContainsString(
            'Set the option certificate of HttpServerOptions',
            self::refusal('tls://127.0.0.1:0')->getMessage(),
        );
    }

    private static function refusal(string ...$addresses): ListenException
    {
        try {
            (new HttpServer(self::peer(...)))->start(...$addresses);
        } catch (ListenException $refusal) {
            return $refusal;
        }
        self::fail('It listens');
    }

    private static function peer(ServerRequestInterface $request): Response
    {
        return Response::json([$request->getServerParams()['REMOTE_ADDR'], $request->getServerParams()['SERVER_ADDR']]);
    }

    /** @return resource */
    private static function unixServer(string $path): mixed
    {
        $server = stream_socket_server("unix://{$path}");
        self::assertNotFalse($server);

        return $server;
    }
}

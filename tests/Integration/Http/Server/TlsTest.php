<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Http\Server;

use Amp\Cancellation;
use Amp\DeferredFuture;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use Psr\Http\Message\ServerRequestInterface;
use Spindle\Http\Client\HttpClient;
use Spindle\Http\Client\RequestOptions;
use Spindle\Http\HttpServer;
use Spindle\Http\HttpServerOptions;
use Spindle\Http\ListenException;
use Spindle\Http\Response;
use Spindle\Tests\Async;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\Eventually;
use Spindle\Tests\Http\HttpServerTestCase;
use Spindle\Tests\Http\RawClient;
use Spindle\Tests\Http\Relay;
use Spindle\Tests\Http\ServerProcess;
use Spindle\Tests\Http\StartsServers;
use Spindle\Tests\Http\SuspendingLogger;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Postgres\Certificates;
use Spindle\TlsOptions;

use function Amp\delay;

/** The same server behind TLS. */
#[RequiresPhpExtension('openssl')]
final class TlsTest extends HttpServerTestCase
{
    use CatchesThrown;
    use OwnDirectory;
    use StartsServers;

    private const MIB = 1_048_576;

    /** @return iterable<string, array{int, string}> */
    public static function versions(): iterable
    {
        yield 'TLS 1.2' => [\STREAM_CRYPTO_METHOD_TLSv1_2_CLIENT, 'TLSv1.2'];
        yield 'TLS 1.3' => [\STREAM_CRYPTO_METHOD_TLSv1_3_CLIENT, 'TLSv1.3'];
    }

    #[DataProvider('versions')]
    public function testAServerSupportsTls(int $method, string $name): void
    {
        $this->serveSecurely(
            static fn(ServerRequestInterface $request): Response => Response::json(
                [
                    (string) $request->getUri(),
                    $request->getServerParams()['HTTPS'] ?? null,
                    $request->getServerParams()['REQUEST_SCHEME'],
                ],
            ),
        );
        $client = $this->secureClient(method: $method);

        self::assertStringStartsWith('tls://127.0.0.1:', $this->address);
        self::assertSame($name, self::session($client)['protocol']);
        foreach ([1, 2] as $i) {
            self::assertSame(['https://server.test/', 'on', 'https'], $client->get('/')->response()->json());
        }
    }

    public function testAHandshakeThatEndsDuringAStopDoesNotDelayIt(): void
    {
        $this->serveSecurely(options: new HttpServerOptions($this->certificate('default.test'), idleGracePeriod: 0.2));
        $client = RawClient::connect($this->address, ['ssl' => ['verify_peer' => false, 'verify_peer_name' => false]]);
        $this->clients[] = $client;
        Eventually::holds(fn(): bool => $this->server()->statistics()->connections === 1, 'it is accepted');
        $stopped = Async::run(fn() => $this->server()->close());
        delay(0.01);
        $client->secure();
        $begin = microtime(true);

        self::assertTrue($client->isEnded());
        self::assertLessThan(5.0, microtime(true) - $begin, 'half of what a head may take');
        $client->close();
        $stopped->await();
    }

    public function testAnOlderVersionIsRefused(): void
    {
        $this->serveSecurely();
        $refused = self::thrown(
            \RuntimeException::class,
            fn() => $this->secureClient(['ciphers' => 'DEFAULT@SECLEVEL=0'], \STREAM_CRYPTO_METHOD_TLSv1_1_CLIENT),
        );
        self::assertStringContainsString('handshake failed', $refused->getMessage());
        Eventually::holds(fn(): bool => $this->server()->statistics()->failedHandshakes === 1, 'it is counted');
        self::assertSame([], $this->log()->all);
        self::assertSame(200, $this->secureClient()->get('/')->response()->status, 'others are served');
    }

    public function testAClientWithoutACommonCipherCausesNoWarning(): void
    {
        $this->serveSecurely();
        self::thrown(
            \RuntimeException::class,
            fn() => $this->secureClient(['ciphers' => 'AES128-SHA'], \STREAM_CRYPTO_METHOD_TLSv1_2_CLIENT),
        );

        self::assertSame([1, []], [$this->server()->statistics()->failedHandshakes, $this->log()->all]);
    }

    public function testTheServerNegotiatesHttp11(): void
    {
        $this->serveSecurely();

        self::assertSame(
            'http/1.1',
            self::session($this->secureClient(['alpn_protocols' => 'h2,http/1.1']))['alpn_protocol'] ?? null,
        );
    }

    public function testEachNameHasItsCertificate(): void
    {
        $this->serveSecurely(
            options: new HttpServerOptions(
                $this->certificate('default.test'),
                certificates: [
                    'one.test' => $this->certificate('one.test'),
                    '*.two.test' => $this->certificate('*.two.test'),
                ],
            ),
        );

        self::assertSame('one.test', self::nameOf($this->secureClient(['peer_name' => 'one.test'])));
        self::assertSame('*.two.test', self::nameOf($this->secureClient(['peer_name' => 'any.two.test'])));
        self::assertSame(
            'default.test',
            self::nameOf($this->secureClient(['peer_name' => 'unknown.test'])),
            'a name that it does not know',
        );
        self::assertSame('default.test', self::nameOf($this->secureClient(['SNI_enabled' => false])), 'no name');
    }

    public function testTheKeyMayBeInASeparateFile(): void
    {
        [$certificate, $key] = (new Certificates($this->path()))->forServer('apart.test');
        $this->serveSecurely(options: new HttpServerOptions($certificate, $key));

        self::assertSame('apart.test', self::nameOf($this->secureClient()));
    }

    public function testAReplacedCertificateIsUsedByTheNextConnection(): void
    {
        $path = $this->certificate('old.test');
        $this->serveSecurely(options: new HttpServerOptions($path));
        $before = $this->secureClient();
        self::assertSame('old.test', self::nameOf($before));
        rename($this->certificate('new.test'), $path);

        self::assertSame('new.test', self::nameOf($this->secureClient()));
        self::assertSame(200, $before->get('/')->response()->status);
    }

    public function testAMissingCertificateFileFailsOnlyNewConnections(): void
    {
        $path = $this->certificate('old.test');
        $this->serveSecurely(options: new HttpServerOptions($path));
        $before = $this->secureClient();
        $good = (string) file_get_contents($path);
        file_put_contents($path, 'half a certifi');
        self::thrown(\RuntimeException::class, fn() => $this->secureClient());
        file_put_contents($path, $good);

        self::assertSame(
            [200, 200],
            [$before->get('/')->response()->status, $this->secureClient()->get('/')->response()->status],
        );
        self::assertSame(1, $this->server()->statistics()->failedHandshakes);
        self::assertCount(1, $this->log()->all, 'the fault is logged');
        self::assertStringContainsString($path, $this->log()->messages()[0]);
    }

    public function testAKeyOfAnotherTypeIsLogged(): void
    {
        $path = $this->certificate('old.test');
        $this->serveSecurely(options: new HttpServerOptions($path));
        $files = (new Certificates($this->path()))->withKeyOfAnotherType('new.test');
        file_put_contents($path, implode('', array_map(file_get_contents(...), $files)));
        self::thrown(\RuntimeException::class, fn() => $this->secureClient());

        self::assertSame(1, $this->server()->statistics()->failedHandshakes);
        self::assertSame(
            ['TLS connections fail because of the certificate: Private key does not match certificate!'],
            $this->log()->messages(),
        );
    }

    /** @return iterable<string, array{\Closure(string, Certificates): mixed, string}> */
    public static function faults(): iterable
    {
        yield 'a missing file' => [static fn(string $path) => unlink($path), 'no such file'];
        yield 'a half-written file' => [
            static fn(string $path) => file_put_contents($path, substr((string) file_get_contents($path), 0, 100)),
            "can't be used",
        ];
        yield 'a key of another certificate' => [
            static fn(string $path, Certificates $authority) => file_put_contents(
                $path,
                file_get_contents($authority->forServer('two.test')[0])
                    . file_get_contents($authority->forServer('two.test')[1]),
            ),
            'key values mismatch',
        ];
        yield 'a damaged second certificate' => [
            static fn(string $path) => file_put_contents(
                $path,
                "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
                \FILE_APPEND,
            ),
            "can't be used",
        ];
        yield 'a key that is too weak' => [
            static fn(string $path, Certificates $authority) => file_put_contents(
                $path,
                implode('', array_map(file_get_contents(...), $authority->withWeakKey('two.test'))),
            ),
            'key too small',
        ];
        yield 'a key of another type' => [
            static fn(string $path, Certificates $authority) => file_put_contents(
                $path,
                implode('', array_map(file_get_contents(...), $authority->withKeyOfAnotherType('two.test'))),
            ),
            'it does not match the certificate',
        ];
        yield 'no key' => [
            static fn(string $path) => file_put_contents(
                $path,
                strstr((string) file_get_contents($path), "-----END CERTIFICATE-----\n", true)
                    . "-----END CERTIFICATE-----\n",
            ),
            'contains no private key. Add the key to this file',
        ];
        yield 'a key with an empty passphrase' => [
            static fn(string $path, Certificates $authority) => file_put_contents(
                $path,
                implode('', array_map(file_get_contents(...), $authority->withEncryptedKey('two.test', ''))),
            ),
            'is encrypted',
        ];
        yield 'an encrypted key' => [
            static fn(string $path, Certificates $authority) => file_put_contents(
                $path,
                implode('', array_map(file_get_contents(...), $authority->withEncryptedKey('two.test'))),
            ),
            'is encrypted',
        ];
    }

    /** @param \Closure(string, Certificates): mixed $spoil */
    #[DataProvider('faults')]
    public function testAFaultyCertificateOfANameAffectsNoOtherName(\Closure $spoil, string $message): void
    {
        $path = $this->certificate('two.test');
        $good = (string) file_get_contents($path);
        $this->serveSecurely(
            options: new HttpServerOptions(
                $this->certificate('default.test'),
                certificates: ['one.test' => $this->certificate('one.test'), 'two.test' => $path],
            ),
        );
        $name = fn(string $requested): string => self::nameOf($this->secureClient(['peer_name' => $requested]));
        $names = fn(): array => array_map($name, ['one.test', 'two.test', 'unknown.test']);
        $all = ['one.test', 'two.test', 'default.test'];
        self::assertSame($all, $names());
        $spoil($path, new Certificates($this->path()));

        self::assertSame(['one.test', 'default.test', 'default.test'], $names());
        self::assertSame(['one.test', 'default.test', 'default.test'], $names());
        self::assertCount(1, $this->log()->all);
        self::assertStringContainsString('The certificate for two.test is not used: ', $this->log()->messages()[0]);
        self::assertStringContainsString($path, $this->log()->messages()[0]);
        self::assertStringContainsString($message, $this->log()->messages()[0]);
        file_put_contents($path, $good);
        self::assertSame($all, $names(), 'the file is used again');
    }

    public function testACertificateThatAnotherUserMayNotReadAffectsNoOtherName(): void
    {
        if (!\function_exists('posix_seteuid') || posix_geteuid() !== 0) {
            self::markTestSkipped('Only root can change the user');
        }
        $paths = [$this->certificate('default.test'), $this->certificate('one.test')];
        chmod($this->path(), 0o755);
        chmod($paths[0], 0o644);
        chmod($paths[1], 0o600);
        Eventually::holds(static function () use ($paths): bool {
            clearstatcache();

            return filectime($paths[1]) < time() - 1;
        }, 'the result of the next check is kept');
        $this->serveSecurely(options: new HttpServerOptions($paths[0], certificates: ['one.test' => $paths[1]]));
        $name = fn(string $requested): string => self::nameOf($this->secureClient(['peer_name' => $requested]));
        self::assertSame('one.test', $name('one.test'));
        posix_seteuid(65_534);
        try {
            self::assertSame(['default.test', 'default.test'], array_map($name, ['one.test', 'default.test']));
        } finally {
            posix_seteuid(0);
        }
        self::assertStringContainsString('The certificate for one.test is not used: ', $this->log()->messages()[0]);
    }

    public function testALoggerThatSuspendsHarmsNoHandshake(): void
    {
        /** @var DeferredFuture<null> $gate */
        $gate = new DeferredFuture();
        $logger = new SuspendingLogger();
        $path = $this->certificate('one.test');
        $this->serve(static function () use ($gate): Response {
            $gate->getFuture()->await();

            return self::hello();
        }, new HttpServerOptions(
            $this->certificate('default.test'),
            certificates: ['one.test' => $path],
        ), 'tls://127.0.0.1:0', $logger);
        unlink($path);
        $client = $this->secureClient()->get('/');
        Eventually::holds(fn(): bool => $this->server()->statistics()->inFlight === 1, 'the handler has begun');
        self::assertCount(1, $logger->messages);
        $logger->release();
        delay(0.01); // the caller of the logger continues
        $gate->complete();

        self::assertSame('hello', $client->response()->body);
        self::assertSame(0, $this->server()->statistics()->failedHandshakes);
    }

    public function testCertificatesAreCheckedOncePerConnection(): void
    {
        $path = $this->certificate('one.test');
        $this->serveSecurely(
            options: new HttpServerOptions($this->certificate('default.test'), certificates: ['one.test' => $path]),
        );
        $begun = $this->client()->send("\x16");
        $this->secureClient()->get('/')->response(); // the server has read the byte before it answers
        unlink($path);
        $begun->send('these bytes are not TLS');
        $begun->rest();

        self::assertSame([1, []], [$this->server()->statistics()->failedHandshakes, $this->log()->all]);
    }

    public function testAnotherDirectoryOfTheProcessDoesNotChangePathsOfCertificates(): void
    {
        $directory = (string) getcwd();
        chdir($this->path());
        try {
            $this->serveSecurely(
                options: new HttpServerOptions(
                    basename($this->certificate('default.test')),
                    certificates: ['one.test' => basename($this->certificate('one.test'))],
                ),
            );
        } finally {
            chdir($directory);
        }

        self::assertSame('default.test', self::nameOf($this->secureClient()));
        self::assertSame('one.test', self::nameOf($this->secureClient(['peer_name' => 'one.test'])));
    }

    public function testTheServerDoesNotAskForThePassphraseOfAReplacedKey(): void
    {
        $paths = [$this->certificate('default.test'), $this->certificate('one.test')];
        // Without a terminal, OpenSSL writes its question to standard error.
        $server = $this->startServer(
            new HttpServerOptions($paths[0], certificates: ['one.test' => $paths[1]]),
            'set -- setsid "$@"',
        );
        $encrypted = (new Certificates($this->path()))->withEncryptedKey('any.test');
        $pem = implode('', array_map(file_get_contents(...), $encrypted));
        file_put_contents($paths[1], $pem);
        $server->client()->close();
        file_put_contents($paths[0], $pem);
        self::thrown(\RuntimeException::class, static fn() => $server->client());

        Eventually::holds(static fn(): bool => \count($server->log()) >= 2, 'the faults are logged');
        self::assertSame(
            [
                "The certificate for one.test is not used: the private key in {$paths[1]} is encrypted."
                    . ' The server needs a key without a passphrase',
                "TLS connections fail because of the certificate: Unable to set private key file `{$paths[0]}'",
            ],
            $server->log(),
        );
    }

    public function testChangedSymbolicLinksToCertificatesAreFollowedAtOnce(): void
    {
        foreach (['old', 'new'] as $version) {
            mkdir($this->path($version));
            foreach (['default', 'one'] as $name) {
                rename($this->certificate("{$version}-{$name}.test"), $this->path("{$version}/{$name}.pem"));
            }
        }
        $this->link('current', 'old');
        // in another process, because PHP clears its cache when this process removes a file
        $server = $this->startServer(new HttpServerOptions(
            $this->path('current/default.pem'),
            certificates: ['one.test' => $this->path('current/one.pem')],
        ));
        self::assertSame(['old-default.test', 'old-one.test'], self::namesOf($server));
        $this->link('current', 'new');
        rename($this->path('old'), $this->path('removed'));

        self::assertSame(['new-default.test', 'new-one.test'], self::namesOf($server));
        self::assertSame([], $server->log());
    }

    public function testAClientFollowsAChangedSymbolicLinkToItsCertificate(): void
    {
        mkdir($this->path('old'));
        mkdir($this->path('new'));
        rename($this->certificate('client.test'), $this->path('old/client.pem'));
        $this->link('current', 'old');
        $server = $this->startServer(new HttpServerOptions($this->certificate('default.test')));
        $options = new RequestOptions(
            tls: new TlsOptions(certificate: $this->path('current/client.pem'), verifyPeer: false),
        );
        $url = str_replace('tls:', 'https:', $server->address) . '/';
        $get = static fn(): string => (string) (new HttpClient())->get($url, options: $options)->getBody();
        self::assertSame('hello from /', $get());
        // in another process, because PHP clears its cache when this process moves a file
        exec('cd ' . escapeshellarg($this->path()) . ' && mv old/client.pem new && ln -sfn new current');

        self::assertSame('hello from /', $get());
    }

    public function testASymbolicLinkToAnEncryptedKeyIsNotUsed(): void
    {
        $encrypted = (new Certificates($this->path()))->withEncryptedKey('any.test');
        $this->file('encrypted.pem', implode('', array_map(file_get_contents(...), $encrypted)));
        rename($this->certificate('one.test'), $this->path('one.pem'));
        $this->link('current.pem', 'one.pem');
        $server = $this->startServer(new HttpServerOptions(
            $this->certificate('default.test'),
            certificates: ['one.test' => $this->path('current.pem')],
        ));
        self::assertSame(['default.test', 'one.test'], self::namesOf($server));
        $this->link('current.pem', 'encrypted.pem');

        self::assertSame(['default.test', 'default.test'], self::namesOf($server));
        Eventually::holds(static fn(): bool => $server->log() !== [], 'the fault is logged');
        self::assertStringContainsString('is encrypted', $server->log()[0]);
    }

    public function testAMismatchedCertificateIsReportedAtTheStart(): void
    {
        $authority = new Certificates($this->path());
        [$certificate] = $authority->forServer('a.test');
        [, $key] = $authority->forServer('b.test');
        $refusals = [
            'key values mismatch' => new HttpServerOptions($certificate, $key),
            'it does not match the certificate' => new HttpServerOptions(
                ...$authority->withKeyOfAnotherType('o.test'),
            ),
            'is encrypted' => new HttpServerOptions(...$authority->withEncryptedKey('e.test')),
            'no such file' => new HttpServerOptions($this->path('missing.pem')),
            'no start line' => new HttpServerOptions($this->file('text.pem', 'no certificate')),
            'key too small' => new HttpServerOptions(...$authority->withWeakKey('w.test')),
            'text.pem' => new HttpServerOptions(
                $this->certificate('c.test'),
                certificates: ['d.test' => $this->path('text.pem')],
            ),
        ];

        foreach ($refusals as $message => $options) {
            $refusal = self::thrown(
                ListenException::class,
                static fn() => (new HttpServer(self::hello(...), $options))->start('tls://127.0.0.1:0'),
            );
            self::assertStringContainsString($message, $refusal->getMessage());
        }
    }

    public function testAStalledHandshakeTimesOut(): void
    {
        $this->serveSecurely(options: new HttpServerOptions($this->certificate('default.test'), tlsTimeout: 0.2));
        $silent = $this->client();
        $begun = $this->client()->send("\x16\x03\x01\x02\x00\x01\x00");

        self::assertSame('', $silent->rest());
        self::assertSame('', $begun->rest());
        self::assertSame(200, $this->secureClient()->get('/')->response()->status);
    }

    public function testASlowHandshakeDelaysNoOtherClient(): void
    {
        $this->serveSecurely();
        $this->client()->send("\x16\x03\x01\x02\x00");

        self::assertSame(200, $this->secureClient()->get('/')->response()->status);
    }

    public function testPlainHttpFailsTheHandshake(): void
    {
        $this->serveSecurely();
        $client = $this->client()->get('/');

        self::assertStringNotContainsString('HTTP/1.1 200', $client->rest());
        self::assertSame([1, []], [$this->server()->statistics()->failedHandshakes, $this->log()->all]);
        self::assertSame(200, $this->secureClient()->get('/')->response()->status);
    }

    #[DataProvider('versions')]
    public function testLargeBodiesArriveInBothDirections(int $method): void
    {
        $this->serveSecurely(
            static fn(ServerRequestInterface $request): Response => Response::binary((string) $request->getBody()),
            new HttpServerOptions($this->certificate('default.test'), maxBodyBytes: 32 * self::MIB),
        );
        $body = str_repeat(random_bytes(self::MIB), 8);
        $client = $this->secureClient(method: $method);

        foreach ([1, 2] as $i) {
            $length = \strlen($body);
            $client->sendConcurrently("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {$length}\r\n\r\n{$body}");
            self::assertTrue($client->response()->body === $body);
        }
    }

    #[DataProvider('versions')]
    public function testASlowReaderGetsAllBytesWithoutBuffering(int $method): void
    {
        $piece = random_bytes(100_000);
        $made = 0;
        $pieces = static function () use ($piece, &$made): \Generator {
            for (; $made < 300; ++$made) {
                yield $piece;
            }
        };
        $this->serveSecurely(static fn(): Response => Response::stream($pieces()));
        $client = $this->secureClient(method: $method)->get('/');
        $client->until("\r\n\r\n");
        $before = memory_get_usage();
        Eventually::standsStill(static function () use (&$made): int {
            return $made;
        }, 'the generator stands still');

        self::assertLessThan(300, $made);
        self::assertLessThan(4 * self::MIB, memory_get_usage() - $before);
        for ($i = 0; $i < 300; ++$i) {
            self::assertSame('186a0', $client->until("\r\n"));
            self::assertTrue($client->bytes(100_000) === $piece);
            $client->bytes(2);
        }
        self::assertSame("0\r\n\r\n", $client->bytes(5));
    }

    /** The kernel does not report data that is decrypted and unread. */
    #[DataProvider('versions')]
    public function testRequestsInOneTlsRecordAreAllAnswered(int $method): void
    {
        $this->serveSecurely(
            static fn(ServerRequestInterface $request): Response => Response::text($request->getRequestTarget()),
        );
        $client = $this->secureClient(method: $method);
        $client->send(implode(
            '',
            array_map(
                static fn(int $i): string => "GET /{$i} HTTP/1.1\r\nHost: a\r\nX: " . str_repeat('x', 400) . "\r\n\r\n",
                range(1, 36),
            ),
        ));

        foreach (range(1, 36) as $i) {
            self::assertSame("/{$i}", $client->response()->body);
        }
    }

    public function testTheEndOfAConnectionIsAnnouncedByAnAlert(): void
    {
        $this->serveSecurely(static fn(): Response => Response::stream(['cut off or not?']));
        $relay = new Relay($this->address);
        $client = $this->clients[] = RawClient::connectSecurely(
            $relay->address,
            method: \STREAM_CRYPTO_METHOD_TLSv1_2_CLIENT,
        );
        $client->send("GET / HTTP/1.0\r\n\r\n");

        self::assertSame('cut off or not?', $client->response()->body);
        $records = $relay->records();
        self::assertSame(
            [23, 21],
            [\array_slice($records, -2)[0] ?? null, end($records)],
            'data, then the alert that there is no more',
        );
        $client->close();
        $relay->close();
    }

    public function testTheEndOfAnIncompleteResponseIsNotAnnounced(): void
    {
        $this->serveSecurely(static fn(): Response => Response::stream((static function (): \Generator {
            yield 'cut off';
            throw new \RuntimeException('No more rows');
        })()));
        $relay = new Relay($this->address);
        $client = $this->clients[] = RawClient::connectSecurely(
            $relay->address,
            method: \STREAM_CRYPTO_METHOD_TLSv1_2_CLIENT,
        );
        $client->send("GET / HTTP/1.0\r\n\r\n");

        self::assertStringEndsWith('cut off', $client->rest());
        $records = $relay->records();
        self::assertSame(23, end($records), 'data, and no alert that there is no more');
        $client->close();
        $relay->close();
    }

    public function testAClientThatEndsItsSideStillGetsTheResponse(): void
    {
        $this->serveSecurely(static function (): Response {
            delay(0.05);

            return Response::text('still answered');
        });
        $client = $this->secureClient()->get('/');
        stream_socket_shutdown($client->stream(), \STREAM_SHUT_WR);

        self::assertSame('still answered', $client->response()->body);
    }

    public function testAClientThatEndsItsSideWithAnAlertStillGetsTheResponse(): void
    {
        $gate = new DeferredFuture();
        $this->serveSecurely(static function (ServerRequestInterface $request) use ($gate): Response {
            $cancellation = $request->getAttribute(Cancellation::class);
            self::assertInstanceOf(Cancellation::class, $cancellation);
            $cancellation->subscribe($gate->complete(...));
            $gate->getFuture()->await();

            return Response::text('still answered');
        });
        $relay = new Relay($this->address);
        $client = $this->clients[] = RawClient::connectSecurely(
            $relay->address,
            method: \STREAM_CRYPTO_METHOD_TLSv1_2_CLIENT,
        );
        $client->get('/');
        Eventually::holds(fn(): bool => $this->server()->statistics()->inFlight === 1, 'the handler runs');
        $before = \count($relay->records());
        stream_socket_enable_crypto($client->stream(), false);
        Eventually::holds(fn(): bool => $this->server()->statistics()->connections === 0, 'the connection ends');

        Eventually::holds(
            static fn(): bool => \array_slice($relay->records(), $before) === [23, 21],
            'the response and the closing alert arrive',
        );
        $relay->close();
    }

    /** @return iterable<string, array{string}> */
    public static function brokenRecords(): iterable
    {
        yield 'a record that was changed' => ["\x17\x03\x03\x00\x20" . str_repeat('x', 32)];
        yield 'bytes without encryption' => ["GET / HTTP/1.1\r\n\r\n"];
    }

    #[DataProvider('brokenRecords')]
    public function testABrokenRecordClosesTheConnectionOfARunningHandler(string $bytes): void
    {
        $gate = new DeferredFuture();
        $isCancelled = false;
        $this->serveSecurely(static function (ServerRequestInterface $request) use ($gate, &$isCancelled): Response {
            $cancellation = $request->getAttribute(Cancellation::class);
            self::assertInstanceOf(Cancellation::class, $cancellation);
            $gate->getFuture()->await();
            $isCancelled = $cancellation->isRequested();

            return Response::text('too late');
        });
        $relay = new Relay($this->address);
        $client = $this->clients[] = RawClient::connectSecurely($relay->address);
        $client->get('/');
        Eventually::holds(fn(): bool => $this->server()->statistics()->inFlight === 1, 'the handler runs');
        $relay->inject($bytes);

        Eventually::holds(fn(): bool => $this->server()->statistics()->connections === 0, 'the connection is closed');
        $gate->complete();
        Eventually::holds(fn(): bool => $this->server()->statistics()->inFlight === 0, 'the handler returns');
        self::assertTrue($isCancelled);
        $relay->close();
    }

    /** @param \Closure(ServerRequestInterface): Response|null $handler */
    private function serveSecurely(?\Closure $handler = null, ?HttpServerOptions $options = null): void
    {
        $this->serve(
            $handler ?? self::hello(...),
            $options ?? new HttpServerOptions($this->certificate('default.test')),
            'tls://127.0.0.1:0',
        );
    }

    /** @param array<string, mixed> $options */
    private function secureClient(array $options = [], int $method = \STREAM_CRYPTO_METHOD_TLS_CLIENT): RawClient
    {
        return $this->clients[] = RawClient::connectSecurely($this->address, $options, $method);
    }

    /** @return string the path of a file with a certificate and its key */
    private function certificate(string $name): string
    {
        [$certificate, $key] = (new Certificates($this->path()))->forServer($name);

        return $this->file(
            bin2hex(random_bytes(4)) . '.pem',
            file_get_contents($certificate) . file_get_contents($key),
        );
    }

    /** Replaces a symbolic link atomically. */
    private function link(string $name, string $target): void
    {
        symlink($target, $this->path('link'));
        rename($this->path('link'), $this->path($name));
    }

    /** @return list<string> names in the certificates for a client without SNI, and for one that requests one.test */
    private static function namesOf(ServerProcess $server): array
    {
        return array_map(static function (array $options) use ($server): string {
            $client = RawClient::connectSecurely($server->address, $options);
            $name = self::nameOf($client);
            $client->close();

            return $name;
        }, [['SNI_enabled' => false], ['peer_name' => 'one.test']]);
    }

    private static function nameOf(RawClient $client): string
    {
        $options = stream_context_get_options($client->stream())['ssl'] ?? null;
        self::assertIsArray($options);
        $certificate = $options['peer_certificate'] ?? null;
        self::assertInstanceOf(\OpenSSLCertificate::class, $certificate);
        $parsed = openssl_x509_parse($certificate);
        self::assertIsArray($parsed);
        self::assertIsArray($parsed['subject']);
        self::assertIsString($parsed['subject']['CN']);

        return $parsed['subject']['CN'];
    }

    /** @return array<mixed> */
    private static function session(RawClient $client): array
    {
        $crypto = stream_get_meta_data($client->stream())['crypto'] ?? null;
        self::assertIsArray($crypto);

        return $crypto;
    }

    private static function hello(): Response
    {
        return Response::text('hello');
    }
}

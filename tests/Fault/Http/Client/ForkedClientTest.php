<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Http\Client;

use Amp\DeferredFuture;
use Amp\Dns\DnsRecord;
use GuzzleHttp\Client as Guzzle;
use GuzzleHttp\HandlerStack;
use Nyholm\Psr7\Stream;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Revolt\EventLoop;
use Revolt\EventLoop\DriverFactory;
use Spindle\Http\Client\GuzzleHandler;
use Spindle\Http\Client\HttpClient;
use Spindle\Http\Client\HttpClientOptions;
use Spindle\Http\Client\RequestOptions;
use Spindle\Http\Client\SymfonyClient;
use Spindle\Http\HttpServer;
use Spindle\Http\HttpServerOptions;
use Spindle\Http\Response;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\Eventually;
use Spindle\Tests\Host;
use Spindle\Tests\Http\ServesHttp;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Postgres\Certificates;
use Spindle\Tests\ScriptedNames;
use Spindle\Tests\Streams;
use Spindle\TlsOptions;

use function Amp\async;
use function Amp\delay;
use function Amp\Dns\dnsResolver;

/** A fork of a process with an {@see HttpClient} has no effect on the connections of that process. */
#[RequiresPhpExtension('pcntl')]
#[RequiresPhpExtension('openssl')]
#[RequiresPhpExtension('FFI')]
final class ForkedClientTest extends TestCase
{
    use EndsInTime;
    use OwnDirectory;
    use ServesHttp;

    #[TestWith(['exit'])]
    #[TestWith(['exit after serving'])]
    #[TestWith(['fatal error'])]
    #[TestWith(['drop'])]
    #[TestWith(['kill'])]
    #[TestWith(['request'])]
    public function testAForkEndsNoConnectionOfItsProcess(string $how): void
    {
        $certificates = new Certificates($this->path());
        [$certificate, $key] = $certificates->forServer('127.0.0.1');
        $gate = new DeferredFuture();
        $this->serve(static function (ServerRequestInterface $request) use ($gate): Response {
            $port = $request->getServerParams()['REMOTE_PORT'] ?? '';
            \assert(\is_int($port) || \is_string($port));
            if ($request->getRequestTarget() === '/finish') {
                $gate->complete();
            }

            return $request->getRequestTarget() !== '/slow' ? Response::text((string) $port) : Response::stream(
                (static function () use ($gate): \Generator {
                    yield 'a';
                    $gate->getFuture()->await();
                    yield 'b';
                })(),
            );
        }, new HttpServerOptions(certificate: $certificate, key: $key), 'tls://127.0.0.1:0');
        $url = str_replace('tls:', 'https:', $this->address);

        $ownStatus = $how === 'exit after serving' ? '200' : '';
        self::assertResult(['ab', true, $ownStatus], 'fork', $how, $url, $certificates->authority);
    }

    public function testAForkThatRunsTheLoopTakesNothingOfItsProcess(): void
    {
        $this->serve(static function (ServerRequestInterface $request): Response {
            $body = (string) $request->getBody();
            delay(0.2);

            return Response::text(hash('xxh3', $body));
        });
        $url = str_replace('tcp:', 'http:', $this->address);

        self::assertResult([hash('xxh3', str_repeat('0123456789', 500_000)), 0], 'runLoop', $url);
    }

    /** @return array{mixed, int|float} the answer in the process, and its running calls afterwards */
    public static function runLoop(string $url): array
    {
        $client = new HttpClient();
        $upload = async(static fn(): string => (string) $client->request(
            'POST',
            $url,
            ['Content-Type' => 'application/octet-stream'],
            str_repeat('0123456789', 500_000),
        )->getBody());
        delay(0.001);
        $fork = pcntl_fork();
        if ($fork === 0) {
            delay(0.5);
            posix_kill((int) getmypid(), \SIGKILL);
        }
        $body = $upload->await();
        pcntl_waitpid($fork, $status);

        return [$body, $client->statistics()['running']];
    }

    #[TestWith(['wait'])]
    #[TestWith(['request'])]
    public function testAForkDoesNotSendARequestThatWaitsForAConnection(string $how): void
    {
        $gate = new DeferredFuture();
        $orders = 0;
        $this->serve(static function (ServerRequestInterface $request) use ($gate, &$orders): Response {
            match ($request->getRequestTarget()) {
                '/slow' => $gate->getFuture()->await(),
                '/finish' => $gate->complete(),
                default => ++$orders,
            };

            return Response::text(ltrim($request->getRequestTarget(), '/'));
        });
        $url = str_replace('tcp:', 'http:', $this->address);

        self::assertResult([7, 'slow', 'order'], 'waitForAConnection', $how, $url);
        self::assertSame(1, $orders);
    }

    /** @return array{int, mixed, mixed} exit status of the fork, and the responses in the process */
    public static function waitForAConnection(string $how, string $url): array
    {
        $client = new HttpClient(new HttpClientOptions(maxConnectionsPerHost: 1));
        $slow = async(static fn(): string => (string) $client->get("{$url}/slow")->getBody());
        $order = async(static fn(): string => (string) $client->request('POST', "{$url}/order")->getBody());
        Eventually::holds(static fn(): bool => $client->statistics()['waiting'] === 1, 'the second request waits');
        $status = self::inFork(static function () use ($how, $url, $client, $slow, $order): void {
            ($how === 'request' ? $client : new HttpClient())->get("{$url}/finish");
            self::assertFails($slow->await(...));
            self::assertFails($order->await(...));
        });

        return [$status, $slow->await(), $order->await()];
    }

    #[TestWith(['kill'])]
    #[TestWith(['request'])]
    #[TestWith(['drop'])]
    public function testAForkWithAnotherEventLoopKeepsItsCallbacks(string $how): void
    {
        $this->serveNumbers();

        self::assertResult([7, 7], 'replaceTheLoop', $how, str_replace('tcp:', 'http:', $this->address));
    }

    /** @return list<int> exit status of forks, before and after the request of the process */
    public static function replaceTheLoop(string $how, string $url): array
    {
        $client = new HttpClient();
        $check = static fn(): int => self::inFork(static function () use ($how, &$client): void {
            EventLoop::setDriver($loop = (new DriverFactory())->create());
            $ids = array_map(static fn(): string => EventLoop::defer(static fn() => null), range(1, 1000));
            array_map(EventLoop::disable(...), $ids);
            match ($how) {
                'kill' => $client?->kill(),
                'request' => $client?->statistics(),
                default => $client = null,
            };
            gc_collect_cycles();
            $lost = array_diff($ids, $loop->getIdentifiers());
            $lost === [] ? null : throw new \RuntimeException('Lost: ' . implode(' ', $lost));
        });
        $before = $check();
        EventLoop::queue($client->get(...), $url);
        EventLoop::run();

        return [$before, $check()];
    }

    public function testAForkDoesNotSendARequestThatLooksUpItsServer(): void
    {
        $this->serveNumbers();
        $url = str_replace('tcp://127.0.0.1', 'http://server.test', $this->address);

        self::assertResult([7, '1'], 'lookUp', $url);
    }

    /** @return array{int, mixed} exit status of the fork, and the response in the process */
    public static function lookUp(string $url): array
    {
        /** @var DeferredFuture<null>|null $answer */
        $answer = null;
        dnsResolver(new ScriptedNames(static function () use (&$answer): array {
            $answer = new DeferredFuture();
            $answer->getFuture()->await();

            return [new DnsRecord('127.0.0.1', DnsRecord::A)];
        }));
        $response = async(static fn(): string => (string) (new HttpClient())->request('POST', $url)->getBody());
        Eventually::holds(static function () use (&$answer): bool {
            return $answer !== null;
        }, 'the look-up has begun');
        $status = self::inFork(static function () use (&$answer, $response): void {
            $answer?->complete();
            self::assertFails($response->await(...));
        });
        $answer?->complete();

        return [$status, $response->await()];
    }

    public function testAForkConnectsToNoFurtherAddressForARequestOfItsProcess(): void
    {
        $this->serveNumbers();
        $url = str_replace('tcp://127.0.0.1', 'http://server.test', $this->address);

        self::assertResult([7, '1'], 'tryAddresses', $url);
    }

    /** @return array{int, mixed} exit status of the fork, and the response in the process */
    public static function tryAddresses(string $url): array
    {
        // The server's queue of connections is full, so its address accepts no further connection.
        $context = stream_context_create(['socket' => ['backlog' => 1]]);
        $port = (int) parse_url($url, \PHP_URL_PORT);
        $flags = \STREAM_SERVER_BIND | \STREAM_SERVER_LISTEN;
        $full = stream_socket_server("tcp://127.0.0.9:{$port}", $code, $message, $flags, $context);
        $async = \STREAM_CLIENT_CONNECT | \STREAM_CLIENT_ASYNC_CONNECT;
        $queued = array_map(
            static fn() => stream_socket_client("tcp://127.0.0.9:{$port}", $code, $message, null, $async),
            range(1, 5),
        );
        $isLookedUp = false;
        dnsResolver(new ScriptedNames(static function () use (&$isLookedUp): array {
            $isLookedUp = true;

            return [new DnsRecord('127.0.0.9', DnsRecord::A), new DnsRecord('127.0.0.1', DnsRecord::A)];
        }));
        $response = async(static fn(): string => (string) (new HttpClient())->request('POST', $url)->getBody());
        Eventually::holds(static function () use (&$isLookedUp): bool {
            return $isLookedUp;
        }, 'the look-up has ended');
        $status = self::inFork(static function () use ($response): void {
            pcntl_alarm(10); // ends a fork that never suspends
            self::assertFails($response->await(...));
        });
        $body = $response->await();
        unset($full, $queued);

        return [$status, $body];
    }

    #[TestWith([0])]
    #[TestWith([10])]
    public function testAForkDoesNotSendARequestOfGuzzle(int $delay): void
    {
        $this->serveNumbers();

        self::assertResult([7, '1'], 'sendWithGuzzle', $delay, str_replace('tcp:', 'http:', $this->address));
    }

    /** @return array{int, string} exit status of the fork, and the response in the process */
    public static function sendWithGuzzle(int $delay, string $url): array
    {
        $guzzle = new Guzzle(['handler' => HandlerStack::create(new GuzzleHandler())]);
        $promise = $guzzle->postAsync($url, ['body' => 'order', 'delay' => $delay]);
        $status = self::inFork(static fn() => self::assertFails($promise->wait(...)));
        $response = $promise->wait();

        return [$status, (string) $response->getBody()];
    }

    #[TestWith(['HttpClient'])]
    #[TestWith(['SymfonyClient'])]
    public function testAForkTakesNoBytesOfAnUpload(string $client): void
    {
        $this->serve(static fn(ServerRequestInterface $request): Response => Response::text(
            (string) $request->getBody(),
        ));
        $url = str_replace('tcp:', 'http:', $this->address);

        self::assertResult([7, '123'], 'upload', $client, $url);
    }

    /** @return array{int, mixed} exit status of the fork, and the response in the process */
    public static function upload(string $client, string $url): array
    {
        [$body, $source] = Streams::pair();
        stream_set_blocking($body, false);
        if ($client === 'HttpClient') {
            $stream = Stream::create($body);
            $fields = ['Content-Type' => 'text/plain'];
            $request = static fn(): ResponseInterface => (new HttpClient())->request('POST', $url, $fields, $stream);
            $future = async(static fn(): string => (string) $request()->getBody());
            $receive = $future->await(...);
        } else {
            $options = ['body' => $body, 'headers' => ['Content-Type' => 'text/plain']];
            $response = (new SymfonyClient())->request('POST', $url, $options);
            $receive = $response->getContent(...);
        }
        fwrite($source, '1');
        $isSent = static fn(): bool => (string) stream_socket_recvfrom($body, 1, \STREAM_PEEK) === '';
        Eventually::holds($isSent, 'the first byte is sent');
        $status = self::inFork(static function () use ($source, $receive): void {
            fwrite($source, '2');
            self::assertFails($receive);
        });
        fwrite($source, '3');
        fclose($source);

        return [$status, $receive()];
    }

    /**
     * Calls a function in a fork, and waits for the fork.
     *
     * @param \Closure(): void $function
     *
     * @return int exit status of the fork; 7 if the function returns
     */
    private static function inFork(\Closure $function): int
    {
        $fork = pcntl_fork();
        if ($fork === 0) {
            try {
                $function();
                pcntl_exec('/bin/sh', ['-c', 'exit 7']);
            } catch (\Throwable $failure) {
                fwrite(\STDERR, (string) $failure);
            } finally {
                posix_kill((int) getmypid(), \SIGKILL);
            }
        }
        pcntl_waitpid($fork, $status);
        \assert(\is_int($status));

        return (int) pcntl_wexitstatus($status);
    }

    /** Answers each request with its number. */
    private function serveNumbers(): void
    {
        $count = 0;
        $this->serve(static function () use (&$count): Response {
            return Response::text((string) ++$count);
        });
    }

    /**
     * @param string $program name of a method of this class, which another process calls
     * @param int|string ...$arguments of the method
     */
    private static function assertResult(mixed $expected, string $program, int|string ...$arguments): void
    {
        $process = Host::start(self::class . "::{$program}", array_values($arguments));
        Eventually::holds(static fn(): bool => !$process->isRunning(), 'the process has ended', 20);

        self::assertStringContainsString(
            'result: ' . json_encode($expected),
            $process->getOutput(),
            $process->getErrorOutput(),
        );
    }

    /** @param \Closure(): mixed $receive receives a response of the parent process */
    private static function assertFails(\Closure $receive): void
    {
        try {
            $answer = $receive();
        } catch (\Throwable $failure) {
            self::assertMatchesRegularExpression('/a fork/', $failure->getMessage());

            return;
        }
        self::fail('The fork has received: ' . json_encode($answer));
    }

    /**
     * @return array{string, bool, string} body of a response during the fork; whether the idle connection was used
     *     again; status on the fork's own connection in a shutdown function
     */
    public static function fork(string $how, string $url, string $authority): array
    {
        $options = new RequestOptions(tls: new TlsOptions($authority));
        $client = new HttpClient(new HttpClientOptions(request: $options));
        $response = $client->get("{$url}/slow");
        $port = (string) $client->get("{$url}/port")->getBody();
        if ($how === 'exit after serving') {
            $server = new HttpServer(static fn(): Response => Response::text('answered'));
            [$address] = $server->start('127.0.0.1:0');
            (new HttpClient())->get(str_replace('tcp:', 'http:', $address));
            $GLOBALS[self::class] = [$server, $client, $response]; // exit() does not destroy them
        }
        $pair = stream_socket_pair(\STREAM_PF_UNIX, \STREAM_SOCK_STREAM, 0);
        \assert($pair !== false);
        [$heard, $told] = $pair;
        unset($pair);
        $fork = pcntl_fork();
        if ($fork === 0) {
            match ($how) {
                'fatal error' => [ini_set('memory_limit', '64M'), str_repeat('x', 1 << 30)],
                'kill' => $client->kill(),
                'request' => $client->get("{$url}/port"),
                default => null,
            };
            if ($how === 'exit after serving') {
                $own = stream_socket_client(
                    str_replace('https:', 'tls:', $url),
                    context: stream_context_create(['ssl' => ['cafile' => $authority]]),
                );
                \assert($own !== false);
                register_shutdown_function(static function () use ($own, $told): void {
                    fwrite($own, "GET /port HTTP/1.0\r\n\r\n");
                    fwrite($told, substr((string) fgets($own), 9, 3));
                });
            }
            if ($how === 'drop') {
                unset($client, $response);
                posix_kill((int) getmypid(), \SIGKILL);
            }
            exit(0);
        }
        pcntl_waitpid($fork, $status);
        $isSame = (string) $client->get("{$url}/finish")->getBody() === $port;

        fclose($told);

        return [(string) $response->getBody(), $isSame, (string) stream_get_contents($heard)];
    }
}

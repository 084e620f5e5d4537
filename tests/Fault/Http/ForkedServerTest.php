<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Http;

use Amp\DeferredFuture;
use Amp\TimeoutCancellation;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\Attributes\TestWith;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Log\AbstractLogger;
use Psr\Log\LoggerInterface;
use Spindle\Http\BackgroundWork;
use Spindle\Http\HttpServer;
use Spindle\Http\HttpServerOptions;
use Spindle\Http\Internal\Message\IterableStream;
use Spindle\Http\Response;
use Spindle\Http\ServerClosedException;
use Spindle\Tests\Eventually;
use Spindle\Tests\Host;
use Spindle\Tests\Http\Records;
use Spindle\Tests\Http\SuspendingLogger;
use Spindle\Tests\TidyTestCase;

use function Amp\delay;

/** A fork of a process with an {@see HttpServer} has no effect on the connections of that process. */
#[RequiresPhpExtension('pcntl')]
final class ForkedServerTest extends TidyTestCase
{
    #[TestWith(['kill'])]
    #[TestWith(['close'])]
    #[TestWith(['cancel'])]
    public function testAForkThatEndsTheServerEndsNoConnectionOfItsProcess(string $how): void
    {
        self::assertSame(
            [7, 'answered', 'answered'],
            Host::call(self::class . '::endInFork', [$how], timeout: 20),
        );
    }

    /**
     * @return list<int|string> exit status of the fork, response to a request that began before the fork, and response
     *     to a connection that no process had accepted when the fork ended the server
     */
    public static function endInFork(string $how): array
    {
        $server = new HttpServer(static function (): ResponseInterface {
            delay(0.3);

            return Response::text('answered');
        });
        [$address] = $server->start('127.0.0.1:0');
        $clients = [self::request($address)];
        delay(0.05);
        $clients[] = self::request($address);
        $fork = pcntl_fork();
        if ($fork === 0) {
            $how === 'kill'
                ? $server->kill()
                : $server->close($how === 'cancel' ? new TimeoutCancellation(0.01) : null);
            pcntl_exec('/bin/sh', ['-c', 'exit 7']);
        }
        pcntl_waitpid($fork, $status);
        \assert(\is_int($status));
        $server->close(new TimeoutCancellation(5));
        $bodies = array_map(
            static fn($client): string => substr((string) strrchr((string) fread($client, 4096), "\n"), 1),
            $clients,
        );

        return [(int) pcntl_wexitstatus($status), ...$bodies];
    }

    #[TestWith(['throw', false])]
    #[TestWith(['throw', true])]
    #[TestWith(['yield', false])]
    #[TestWith(['yield', true])]
    #[TestWith(['yield more', false])]
    #[TestWith(['return', false])]
    #[TestWith(['return', true])]
    public function testAForkByTheGeneratorOfABodyIsKilled(string $how, bool $hasEvents): void
    {
        self::assertSame(
            [\SIGKILL, $how === 'yield more' ? ['begin', 'more', 'parent', 'end'] : ['begin', 'parent', 'end']],
            Host::call(self::class . '::forkInBody', [$how, $hasEvents], timeout: 20),
        );
    }

    /** @return array{int, list<string>} signal that has ended the fork, and the pieces that the client has received */
    public static function forkInBody(string $how, bool $hasEvents): array
    {
        $status = 0;
        $pieces = static function () use ($how, &$status): \Generator {
            yield 'begin';
            if ($how === 'yield more') {
                yield 'more';
            }
            $fork = pcntl_fork();
            if ($fork === 0) {
                pcntl_alarm(5);
                if ($how === 'throw') {
                    throw new \RuntimeException('The fork failed');
                } elseif ($how === 'return') {
                    return;
                }
                yield 'fork';
                exit(0); // not reached
            }
            pcntl_waitpid($fork, $status);
            yield 'parent';
            yield 'end';
        };
        $server = new HttpServer(static fn(): ResponseInterface
            => $hasEvents ? Response::serverSentEvents($pieces()) : Response::stream($pieces()));
        [$address] = $server->start('127.0.0.1:0');
        $client = self::request($address);
        Eventually::holds(
            static fn(): bool => $server->statistics()->answeredRequests === [200 => 1],
            'the server has answered',
        );
        preg_match_all('/begin|more|fork|parent|end/', (string) stream_get_contents($client), $received);
        $server->kill();
        \assert(\is_int($status));

        return [(int) pcntl_wtermsig($status), $received[0]];
    }

    public function testAForkByTheGeneratorOfABodyJoinsNoFurtherPieces(): void
    {
        self::assertSame(['abc', 'ab'], Host::call(self::class . '::joinInFork', timeout: 20));
    }

    /** @return list<string> the pieces that the process and its fork have read */
    public static function joinInFork(): array
    {
        $fork = null;
        $stream = new IterableStream((static function () use (&$fork): \Generator {
            yield 'a';
            $fork = pcntl_fork();
            yield 'b';
            yield 'c';
        })());
        $read = $stream->readJoined(100, \PHP_INT_MAX);
        if ($fork === 0) {
            pcntl_exec('/bin/sh', ['-c', 'exit ' . \strlen($read)]);
        }
        pcntl_waitpid($fork, $status);
        \assert(\is_int($status));

        return [$read, substr('abc', 0, (int) pcntl_wexitstatus($status))];
    }

    #[TestWith([false])]
    #[TestWith([true])]
    public function testAForkMadeWithoutOpenConnectionsIsKilledBeforeItAccepts(bool $loggerSuspends): void
    {
        self::assertSame(\SIGKILL, Host::call(self::class . '::acceptInFork', [$loggerSuspends], timeout: 20));
    }

    /** @return int signal that has ended the fork */
    public static function acceptInFork(bool $loggerSuspends): int
    {
        $server = new HttpServer(
            static fn(): ResponseInterface => Response::text('answered'),
            logger: $loggerSuspends ? new SuspendingLogger() : null,
        );
        [$address] = $server->start('127.0.0.1:0');
        $served = self::request($address);
        Eventually::holds(
            static fn(): bool => $server->statistics()->answeredRequests === [200 => 1],
            'the server has answered',
        );
        fclose($served);
        Eventually::holds(static fn(): bool => $server->statistics()->connections === 0, 'the connection has ended');
        $client = self::request($address);
        $fork = pcntl_fork();
        if ($fork === 0) {
            pcntl_alarm(5);
            Eventually::holds(
                static fn(): bool => $server->statistics()->answeredRequests === [200 => 2],
                'the fork answers',
            );
            exit(0);
        }
        pcntl_waitpid($fork, $status);
        \assert(\is_int($status));

        return (int) pcntl_wtermsig($status);
    }

    #[TestWith(['handler'])]
    #[TestWith(['stream'])]
    #[TestWith(['work'])]
    public function testAForkThatExitsRunsNoCodeThatWaitsInItsProcess(string $where): void
    {
        self::assertSame(
            [7, "parent\n", 'begin end'],
            Host::call(self::class . '::exitInFork', [$where], timeout: 20),
        );
    }

    /**
     * @return array{int, string, string} exit status of the fork, the processes that have run the `finally` block of
     *     the waiting code and the log, and the response to the request of this code
     */
    public static function exitInFork(string $where): array
    {
        $parent = getmypid();
        $isWaiting = false;
        /** @var DeferredFuture<null> $go */
        $go = new DeferredFuture();
        $status = 0;
        $file = tmpfile();
        \assert($file !== false);
        $wait = static function () use ($go, &$isWaiting, $file, $parent): void {
            try {
                $isWaiting = true;
                $go->getFuture()->await();
            } finally {
                fwrite($file, getmypid() === $parent ? "parent\n" : "fork\n");
            }
        };
        $server = new HttpServer(static function (ServerRequestInterface $request) use (
            $where,
            $wait,
            $go,
            &$status,
        ): ResponseInterface {
            if ($request->getRequestTarget() === '/') {
                if ($where === 'stream') {
                    return Response::stream((static function () use ($wait): \Generator {
                        yield 'begin ';
                        $wait();
                        yield 'end';
                    })());
                }
                $where === 'work' ? BackgroundWork::start($wait) : $wait();

                return Response::text('begin end');
            }
            $fork = pcntl_fork();
            if ($fork === 0) {
                pcntl_alarm(5);
                exit(7);
            }
            pcntl_waitpid($fork, $status);
            $go->complete();

            return Response::text('forked');
        }, logger: self::logTo($file));
        [$address] = $server->start('127.0.0.1:0');
        $client = self::request($address);
        Eventually::holds(static function () use (&$isWaiting): bool {
            return $isWaiting;
        }, 'the code waits');
        $forking = self::request($address, '/fork');
        Eventually::holds(
            static fn(): bool => $server->statistics()->answeredRequests === [200 => 2],
            'the server has answered',
        );
        $server->kill();
        fclose($forking);
        preg_match_all('/begin |end/', (string) stream_get_contents($client), $pieces);
        rewind($file);
        \assert(\is_int($status));

        return [
            pcntl_wifexited($status) ? (int) pcntl_wexitstatus($status) : -(int) pcntl_wtermsig($status),
            (string) stream_get_contents($file),
            implode('', $pieces[0]),
        ];
    }

    public function testAForkThatExitsAfterTheEndOfTheServerCallsDestructors(): void
    {
        self::assertSame([7, 'destroyed'], Host::call(self::class . '::exitAfterEnd', timeout: 20));
    }

    /** @return array{int, string} exit status of the fork, and what the destructor has written */
    public static function exitAfterEnd(): array
    {
        $server = new HttpServer(static fn(): ResponseInterface => Response::text('answered'));
        self::body(self::request($server->start('127.0.0.1:0')[0]), $server);
        $file = tmpfile();
        \assert($file !== false);
        $object = new class ($file) {
            /** @param resource $file */
            public function __construct(private $file) {}

            public function __destruct()
            {
                fwrite($this->file, 'destroyed');
            }
        };
        $fork = pcntl_fork();
        if ($fork === 0) {
            $GLOBALS[self::class] = $object;
            exit(7);
        }
        pcntl_waitpid($fork, $status);
        rewind($file);
        \assert(\is_int($status));

        return [(int) pcntl_wexitstatus($status), (string) stream_get_contents($file)];
    }

    #[TestWith([false])]
    #[TestWith([true])]
    public function testAForkThatWaitsInTheEventLoopSendsNoBytesOfItsProcess(bool $hasOwnServer): void
    {
        self::assertSame(
            [$hasOwnServer ? \SIGALRM : \SIGKILL, true],
            Host::call(self::class . '::sendInFork', [$hasOwnServer], timeout: 20),
        );
    }

    /** @return array{int, bool} signal that has ended the fork, and whether the client has received each byte once */
    public static function sendInFork(bool $hasOwnServer): array
    {
        $body = implode(' ', range(1, 2_000_000)); // does not fit into the buffers of the kernel
        $server = new HttpServer(static fn(): ResponseInterface => Response::text($body));
        [$address] = $server->start('127.0.0.1:0');
        $client = self::request($address, connection: 'keep-alive');
        Eventually::holds(
            static fn(): bool => $server->statistics()->answeredRequests === [200 => 1],
            'the server has begun to send',
        );
        $fork = pcntl_fork();
        if ($fork === 0) {
            pcntl_alarm($hasOwnServer ? 1 : 5);
            $own = new HttpServer(static fn(): ResponseInterface => Response::text('own'));
            $hasOwnServer ? $own->start('127.0.0.1:0') : null;
            Eventually::holds(static fn(): bool => false, 'the fork is killed', 10);
        }
        stream_set_blocking($client, false);
        [$received, $status] = ['', 0];
        while (pcntl_waitpid($fork, $status, \WNOHANG) === 0) { // room in the buffers wakes the fork
            $received .= stream_get_contents($client);
        }
        Eventually::holds(static function () use ($client, &$received, $server): bool {
            $received .= stream_get_contents($client);

            return $server->statistics()->sendingResponses === 0;
        }, 'the server has sent all');
        $server->kill();
        $received .= stream_get_contents($client);
        \assert(\is_int($status));

        return [(int) pcntl_wtermsig($status), strstr($received, "\r\n\r\n") === "\r\n\r\n{$body}"];
    }

    public function testAForkWithItsOwnServerLeavesClientsOfItsProcessAlone(): void
    {
        self::assertSame([7, 'own', 'parent', 'parent'], Host::call(self::class . '::serveInFork', timeout: 20));
    }

    /** @return list<int|string> exit status of the fork, its response, and the responses of its process */
    public static function serveInFork(): array
    {
        $server = new HttpServer(
            static fn(): ResponseInterface => Response::text('parent'),
            new HttpServerOptions(headTimeout: 0.1),
        );
        [$address] = $server->start('127.0.0.1:0');
        $clients = [self::request($address, connection: 'keep-alive')];
        $unfinished = stream_socket_client($address);
        Eventually::holds(
            static fn(): bool => $server->statistics()->connections === 2
                && $server->statistics()->answeredRequests === [200 => 1],
            'the server has answered',
        );
        fread($clients[0], 4096);
        [$reader, $writer] = (array) stream_socket_pair(\STREAM_PF_UNIX, \STREAM_SOCK_STREAM, 0);
        \assert(\is_resource($reader) && \is_resource($writer));
        $fork = pcntl_fork();
        if ($fork === 0) {
            pcntl_alarm(10);
            $own = new HttpServer(
                static fn(): ResponseInterface => Response::text('own'),
                new HttpServerOptions(headTimeout: 0.6),
            );
            [$ownAddress] = $own->start('127.0.0.1:0');
            $ownUnfinished = stream_socket_client($ownAddress);
            fwrite($writer, "{$ownAddress}\n");
            Eventually::holds(
                static fn(): bool => $own->statistics()->answeredRequests === [200 => 1]
                    && $own->statistics()->acceptedConnections === 2
                    && $own->statistics()->connections === 0,
                'it has answered, and a deadline has passed, which is later than that of its process',
            );
            \assert(\is_resource($ownUnfinished));
            pcntl_exec('/bin/sh', ['-c', 'exit 7']);
        }
        $ownAddress = trim((string) fgets($reader));
        fwrite($clients[0], "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        $clients[] = self::request($address);
        $answers = [self::body(self::request($ownAddress))];
        pcntl_waitpid($fork, $status);
        \assert(\is_int($status));
        Eventually::holds(
            static fn(): bool => $server->statistics()->answeredRequests === [200 => 3],
            'the server has answered all',
        );
        $server->kill();
        \assert(\is_resource($unfinished));

        return [(int) pcntl_wexitstatus($status), ...$answers, ...array_map(self::body(...), $clients)];
    }

    public function testAForkCanNotStartTheServerOfItsProcess(): void
    {
        self::assertSame(7, Host::call(self::class . '::startInFork', timeout: 20));
    }

    /** @return int exit status of the fork */
    public static function startInFork(): int
    {
        $status = 0;
        $server = new HttpServer(static function () use (&$server, &$status): ResponseInterface {
            $fork = pcntl_fork();
            if ($fork === 0) {
                \assert($server instanceof HttpServer);
                try {
                    $server->start('127.0.0.1:0');
                    exit(1);
                } catch (ServerClosedException) {
                    exit(7);
                }
            }
            pcntl_waitpid($fork, $status);

            return Response::text('answered');
        });
        self::body(self::request($server->start('127.0.0.1:0')[0]), $server);
        \assert(\is_int($status));

        return (int) pcntl_wexitstatus($status);
    }

    public function testAForkByAHandlerIsKilledWhenItWaits(): void
    {
        self::assertSame(\SIGKILL, Host::call(self::class . '::waitInFork', timeout: 20));
    }

    /** @return int signal that has ended the fork */
    public static function waitInFork(): int
    {
        $status = 0;
        $server = new HttpServer(static function () use (&$status): ResponseInterface {
            $fork = pcntl_fork();
            if ($fork === 0) {
                pcntl_alarm(5);
                delay(10);
            }
            pcntl_waitpid($fork, $status);

            return Response::text('answered');
        });
        self::body(self::request($server->start('127.0.0.1:0')[0]), $server);
        \assert(\is_int($status));

        return (int) pcntl_wtermsig($status);
    }

    public function testAForkHasNoBackgroundWorkOfItsProcess(): void
    {
        self::assertSame([0, 1], Host::call(self::class . '::forkDuringBackgroundWork', timeout: 20));
    }

    /** @return list<int> number of functions in the fork and in the process */
    public static function forkDuringBackgroundWork(): array
    {
        BackgroundWork::start((new DeferredFuture())->getFuture()->await(...));
        delay(0);
        $fork = pcntl_fork();
        if ($fork === 0) {
            pcntl_exec('/bin/sh', ['-c', 'exit ' . BackgroundWork::running()]);
        }
        pcntl_waitpid($fork, $status);
        \assert(\is_int($status));

        return [(int) pcntl_wexitstatus($status), BackgroundWork::running()];
    }

    #[TestWith([false])]
    #[TestWith([true])]
    public function testAForkByBackgroundWorkIsKilled(bool $throws): void
    {
        self::assertSame(\SIGKILL, Host::call(self::class . '::forkInBackgroundWork', [$throws], timeout: 20));
    }

    /** @return int signal that has ended the fork */
    public static function forkInBackgroundWork(bool $throws): int
    {
        $status = 0;
        $server = new HttpServer(static function () use ($throws, &$status): ResponseInterface {
            BackgroundWork::start(static function () use ($throws, &$status): void {
                $fork = pcntl_fork();
                if ($fork === 0) {
                    pcntl_alarm(5);
                    $throws ? throw new \RuntimeException('The fork failed') : null;
                } else {
                    pcntl_waitpid($fork, $status);
                }
            });

            return Response::text('answered');
        });
        [$address] = $server->start('127.0.0.1:0');
        $client = self::request($address);
        Eventually::holds(
            static fn(): bool => $server->statistics()->answeredRequests === [200 => 1],
            'the server has answered',
        );
        $server->close();
        fclose($client);
        \assert(\is_int($status));

        return (int) pcntl_wtermsig($status);
    }

    /** @param resource $file */
    private static function logTo($file): LoggerInterface
    {
        return new class ($file) extends AbstractLogger {
            /** @param resource $file */
            public function __construct(private $file) {}

            public function log($level, string|\Stringable $message, array $context = []): void
            {
                if (!Records::isBlockWarning((string) $message)) {
                    fwrite($this->file, "{$message}\n");
                }
            }
        };
    }

    /**
     * @param resource        $client
     * @param HttpServer|null $server runs in this process and is awaited; null if another process answers, or if this
     *     process has answered
     */
    private static function body($client, ?HttpServer $server = null): string
    {
        $server === null ? null : Eventually::holds(
            static fn(): bool => $server->statistics()->answeredRequests === [200 => 1],
            'the server has answered',
        );
        $server?->kill();

        return substr((string) strrchr((string) stream_get_contents($client), "\n"), 1);
    }

    /** @return resource */
    private static function request(string $address, string $target = '/', string $connection = 'close')
    {
        $client = stream_socket_client($address);
        \assert($client !== false);
        fwrite($client, "GET {$target} HTTP/1.1\r\nHost: localhost\r\nConnection: {$connection}\r\n\r\n");

        return $client;
    }
}

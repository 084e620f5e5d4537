<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Remote;

use Amp\Future;
use Amp\Socket\Socket;
use PHPUnit\Framework\Attributes\AfterClass;
use PHPUnit\Framework\Attributes\BeforeClass;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Spindle\Remote\BrokerException;
use Spindle\Remote\BrokerRefusedException;
use Spindle\Remote\BrokerUnavailableException;
use Spindle\Remote\Durability;
use Spindle\Remote\JobRetryPolicy;
use Spindle\Remote\RedisBroker;
use Spindle\Remote\RemoteExecutor;
use Spindle\Remote\RemoteOptions;
use Spindle\Remote\Testing\TemporaryRedis;
use Spindle\Remote\Testing\TemporaryRedisOptions;
use Spindle\Tests\Cli\RunsWork;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\Eventually;
use Spindle\Tests\Http\ScriptedServer;
use Spindle\Tests\Postgres\Certificates;
use Spindle\Tests\Streams;
use Spindle\TlsOptions;

use function Amp\delay;

/**
 * An engine that refuses agents and callers, or some of their commands. They report what to do, and cause no reconnect
 * storm.
 */
final class ConnectionRefusalsTest extends TestCase
{
    use EndsInTime;
    use RunsWork;

    /** Connections that a process may open for one failing request: for commands and for its mailbox. */
    private const CONNECTIONS = 2;

    private static ?TemporaryRedis $redis = null;

    /** The certificate of the authority that has signed the engine's, in PEM. */
    private static string $authority = '';

    private int $looks = 0;

    /** @param list<string> $advice words of the message */
    #[DataProvider('refusals')]
    public function testACallerThatIsRefusedGetsAdviceAtOnce(string $how, array $advice): void
    {
        $address = $this->address($how);
        $executor = new RemoteExecutor(
            new RedisBroker($address),
            self::newQueue(),
            self::keys(),
            new JobRetryPolicy(),
            new RemoteOptions(brokerRetryTimeout: 5.0),
        );
        $before = $this->connections();
        $uses = [
            static fn(): mixed => $executor->submit('time'),
            static fn(): mixed => $executor->dispatch(time(...)),
            static fn(): mixed => $executor->attach('any')->await(),
            static fn(): mixed => iterator_to_array($executor->map([1], abs(...))),
        ];
        foreach ($uses as $use) {
            $failure = self::thrown($use);
            self::assertInstanceOf(BrokerRefusedException::class, $failure);
            self::assertSays($advice, $failure->getMessage());
        }
        // The test asserts that during this time nothing is thrown into the loop and no connection is retried.
        delay(0.1);

        self::assertLessThanOrEqual(\count($uses) * self::CONNECTIONS, $this->connections() - $before);
    }

    public function testAConnectionThatIsRefusedIsReportedAtOnceAndAsThat(): void
    {
        $address = Streams::unusedAddress();
        $began = hrtime(true);
        $failure = self::thrown(static fn(): mixed => (new RedisBroker("redis://{$address}"))->status('any', 'any'));

        self::assertInstanceOf(BrokerUnavailableException::class, $failure);
        self::assertSame(
            "The engine at {$address} is not available: connection refused; is Redis or Valkey running there?",
            $failure->getMessage(),
        );
        self::assertLessThan(3.5, (hrtime(true) - $began) / 1e9, 'it is not tried again here');
    }

    #[TestWith(["ERR unknown command 'AUTH', with args beginning with: 'app' 's3cret' "])] // Redis 7, AUTH renamed
    #[TestWith(['ERR unknown command `AUTH`, with args beginning with: `app`, `s3cret`, '])] // Redis 6
    public function testAnEngineThatRepeatsThePasswordDoesNotRevealItInTheFailure(string $answer): void
    {
        $server = new ScriptedServer(static function (Socket $socket) use ($answer): void {
            while ($socket->read() !== null) {
                $socket->write("-{$answer}\r\n");
            }
        });
        $failure = self::thrown((new RedisBroker("redis://app:s3cret@{$server->address()}"))->durability(...));
        $server->close();

        self::assertSays(['ERR unknown command', 'AUTH'], $failure->getMessage());
        self::assertStringNotContainsString('s3cret', (string) $failure);
        for (; $failure !== null; $failure = $failure->getPrevious()) {
            self::assertStringNotContainsString('s3cret', $failure->getMessage());
        }
    }

    public function testASocketWithAnEncodedPathGetsAdvice(): void
    {
        $broker = new RedisBroker('unix://' . $this->path('a%20socket'));

        self::assertStringEndsWith(
            'a%20socket is not available: no such file or directory; write the path without percent-encoding',
            self::thrown($broker->durability(...))->getMessage(),
        );
    }

    /** @param list<string> $advice words of the message */
    #[DataProvider('refusals')]
    public function testAnAgentThatIsRefusedEndsWithAdvice(string $how, array $advice): void
    {
        $address = $this->address($how);
        $before = $this->connections();
        $process = $this->remote(
            ['work', '--queue', self::newQueue(), '--workers', '1', '--allow-root', '--quiet'],
            ['SPINDLE_BROKER' => $address],
        );

        self::assertSame(253, $process->run(), $process->getErrorOutput());
        self::assertSays($advice, $process->getErrorOutput());
        self::assertLessThanOrEqual(self::CONNECTIONS, $this->connections() - $before);
    }

    /** @return iterable<string, array{string, list<string>}> */
    public static function refusals(): iterable
    {
        yield 'a wrong password' => [
            'wrong password',
            ['does not accept the user or the password', 'put the user and the password into the address'],
        ];
        yield 'no password' => [
            'no password',
            ['requires a password, and its address has none', 'put the user and the password into the address'],
        ];
        yield 'a database that it has not' => ['database', ['DB index is out of range', 'the database number']];
        yield 'a certificate that is not trusted' => [
            'untrusted',
            ["its TLS certificate can't be verified", 'SSL_CERT_FILE', 'that its certificate is trusted'],
        ];
        yield 'no scripts' => ['-evalsha', ['ACL SETUSER app +evalsha;', 'docs/reference/remote.md']];
        // Redis 7.0 does not name the command, so the advice is "its ACL LOG" in place of "run ACL SETUSER".
        yield 'no hashes' => ['-hset -get', ['ACL ', 'docs/reference/remote.md']];
        yield 'no keys' => ['resetkeys', ['ACL SETUSER app "~spindle:*";', 'docs/reference/remote.md']];
        yield 'no mailboxes' => ['-subscribe', ['subscribe', 'docs/reference/remote.md']];
        yield 'no channels' => ['resetchannels', ['ACL SETUSER app "&spindle:*";', 'docs/reference/remote.md']];
    }

    /** @param list<string> $advice words of the message */
    #[DataProvider('mismatches')]
    public function testAnEngineThatSpeaksOtherwiseIsWaitedForAndTheReasonSaid(string $how, array $advice): void
    {
        $address = $this->address($how);
        $broker = new RedisBroker($address, timeout: 0.5);
        $before = $this->connections();
        $failure = self::thrown($broker->durability(...));
        self::assertInstanceOf(BrokerUnavailableException::class, $failure);
        self::assertSays($advice, $failure->getMessage());
        $this->works[] = $process = $this->remote(
            ['work', '--queue', self::newQueue(), '--workers', '1', '--allow-root'],
            ['SPINDLE_BROKER' => $address],
        );
        $process->start();
        $hasSaid = static fn(): bool => str_contains($process->getErrorOutput(), $advice[0]);
        Eventually::holds($hasSaid, 'the agent says why it waits', 15.0);
        delay(1.0); // The test asserts that during this time the agent goes on without connecting repeatedly.

        self::assertTrue($process->isRunning());
        self::assertLessThan(10, $this->connections() - $before);
    }

    /** @return iterable<string, array{string, list<string>}> */
    public static function mismatches(): iterable
    {
        yield 'without TLS where it is asked for' => ['plain peer', ['TLS usually has its own port']];
        yield 'with TLS where it is not asked for' => ['plain caller', ['rediss://']];
    }

    public function testTlsNeedsOnlyATrustedCertificate(): void
    {
        $address = $this->address('untrusted');
        $authority = $this->file('authority', self::$authority);
        $queue = self::newQueue();
        $this->work($queue, environment: ['SPINDLE_BROKER' => $address, 'SSL_CERT_FILE' => $authority]);
        $tls = new TlsOptions($authority);

        self::assertSame(
            7,
            (new RemoteExecutor(
                new RedisBroker($address, $tls),
                $queue,
                self::keys(),
            ))->submit(static fn(): int => 7)->await(),
        );
        $other = new TlsOptions($authority, serverName: 'redis.test');
        $failure = self::thrown((new RedisBroker($address, $other))->durability(...));
        self::assertInstanceOf(BrokerRefusedException::class, $failure);
        self::assertSays(['redis.test', 'set TlsOptions::$serverName'], $failure->getMessage());
    }

    public function testACallerWhoseCertificateIsRefusedAfterTheHandshakeGetsAdvice(): void
    {
        $server = ScriptedServer::refusingCertificates(new Certificates($this->path()));
        [$certificate, $key] = (new Certificates($this->path(), 'Another authority'))->forClient('app');
        $tls = new TlsOptions(certificate: $certificate, key: $key, verifyPeer: false);
        $failure = self::thrown((new RedisBroker("rediss://{$server->address()}", $tls))->durability(...));
        $server->close();

        self::assertInstanceOf(BrokerRefusedException::class, $failure);
        self::assertSays(['alert unknown ca; set TlsOptions::$certificate'], $failure->getMessage());
    }

    public function testAUserThatMayNotLoadScriptsGetsAdvice(): void
    {
        $failure = self::thrown((new RedisBroker($this->address('-script')))->durability(...));

        self::assertInstanceOf(BrokerRefusedException::class, $failure);
        self::assertSays(['ACL SETUSER app +script|exists +script|load;'], $failure->getMessage());
        self::engine()->command('ACL', 'SETUSER', 'app', '+script|exists', '+script|load');
        $broker = new RedisBroker('redis://app:secret@127.0.0.1:' . self::engine()->port);
        self::assertSame(Durability::Fast, $broker->durability());
    }

    public function testAUserIsAcceptedOnceItHasTheMissingPermission(): void
    {
        $executor = new RemoteExecutor(new RedisBroker($this->address('-evalsha')), self::newQueue(), self::keys());
        self::assertInstanceOf(
            BrokerRefusedException::class,
            self::thrown(static fn(): string => $executor->dispatch(time(...))),
        );
        self::engine()->command('ACL', 'SETUSER', 'app', '+evalsha');

        self::assertSame('own', $executor->dispatch(time(...), 'own'));
    }

    #[TestWith(['-subscribe', '+subscribe'])]
    #[TestWith(['resetchannels', '&spindle:*'])]
    public function testTheNextCallOpensARefusedMailboxAgain(string $missing, string $permission): void
    {
        $queue = self::newQueue();
        $executor = new RemoteExecutor(new RedisBroker($this->address($missing)), $queue, self::keys());
        $submit = static fn(): Future => $executor->submit('time');
        self::assertInstanceOf(BrokerRefusedException::class, self::thrown($submit));
        self::engine()->command('ACL', 'SETUSER', 'app', $permission);
        $submit()->ignore();

        self::assertSame(1, (new RedisBroker(self::engine()->url()))->statistics($queue)['waiting']);
        $executor->kill();
    }

    #[BeforeClass]
    public static function startEngine(): void
    {
        self::$authority = Certificates::during(static function (Certificates $authority): string {
            [$certificate, $key] = $authority->forServer('127.0.0.1');
            self::$redis = TemporaryRedis::start([], new TemporaryRedisOptions(certificate: $certificate, key: $key));

            return (string) file_get_contents($authority->authority);
        });
    }

    #[AfterClass]
    public static function stopEngine(): void
    {
        self::$redis?->stop();
        self::$redis = null;
    }

    private static function engine(): TemporaryRedis
    {
        return self::$redis ?? self::fail('It was not started');
    }

    private function address(string $how): string
    {
        $plain = '127.0.0.1:' . self::engine()->port;
        $password = self::engine()->password;
        if (str_starts_with($how, '-') || str_starts_with($how, 'reset')) {
            self::engine()->command('ACL', 'DELUSER', 'app');
            self::engine()->command(
                'ACL',
                'SETUSER',
                'app',
                'on',
                '>secret',
                '~spindle:*',
                '&spindle:*',
                '+@all',
                ...explode(' ', $how),
            );
        }

        return match ($how) {
            'wrong password' => "redis://:wrong@{$plain}",
            'no password' => "redis://{$plain}",
            'database' => "redis://:{$password}@{$plain}/99",
            'untrusted' => self::engine()->tlsUrl(),
            'plain peer' => "rediss://:{$password}@{$plain}",
            'plain caller' => str_replace('rediss:', 'redis:', self::engine()->tlsUrl()),
            default => "redis://app:secret@{$plain}",
        };
    }

    /** Returns the number of connections to the engine so far, without those of this test. */
    private function connections(): int
    {
        $info = self::engine()->command('INFO', 'stats');

        return \is_string($info) && preg_match('/^total_connections_received:(\d+)/m', $info, $match) === 1
            ? (int) $match[1] - ++$this->looks
            : self::fail('It says nothing of connections');
    }

    /** @param \Closure(): mixed $use */
    private static function thrown(\Closure $use): BrokerException
    {
        try {
            $use();
        } catch (BrokerException $failure) {
            return $failure;
        }
        self::fail('It is refused');
    }

    /** @param list<string> $words */
    private static function assertSays(array $words, string $message): void
    {
        foreach ($words as $word) {
            self::assertStringContainsString($word, $message);
        }
        self::assertCount(1, explode("\n", trim($message)), $message);
    }
}

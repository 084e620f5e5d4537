<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Remote;

use Spindle\Remote\Internal\Redis\Address;
use Spindle\Remote\Testing\TemporaryRedis;
use Spindle\Remote\Testing\TemporaryRedisException;
use Spindle\Remote\Testing\TemporaryRedisOptions;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\EndsWithItsOwner;
use Spindle\Tests\Eventually;
use Spindle\Tests\Postgres\Certificates;
use Spindle\Tests\Processes;
use Spindle\Tests\Text;
use Spindle\Tests\TidyTestCase;

final class TemporaryRedisTest extends TidyTestCase
{
    use CatchesThrown;
    use EndsWithItsOwner;

    /** Microseconds after which a start is still in progress. */
    private const MICROSECONDS_INTO_START = 4_000;

    public function testItAnswersOnItsPortAndItsUnixSocketAndOnlyWithThePassword(): void
    {
        $redis = TemporaryRedis::start();

        foreach ([$redis->url(), $redis->socketUrl()] as $text) {
            $address = Address::parse($text);
            self::assertSame($redis->password, $address->password?->getValue());
            self::assertSame("-NOAUTH Authentication required.\r\n", self::firstAnswer($address->uri(), 'PING'));
            self::assertSame("+OK\r\n", self::firstAnswer($address->uri(), "AUTH {$redis->password}"));
            self::assertStringStartsWith('-WRONGPASS ', self::firstAnswer($address->uri(), 'AUTH wrong'));
        }
        self::assertSame("redis://:{$redis->password}@127.0.0.1:{$redis->port}", $redis->url());
        $redis->stop();
        self::assertNothingLeft($redis->directory);
    }

    public function testAnswersKeepTheirTypes(): void
    {
        $redis = TemporaryRedis::start();
        $bytes = "\0\r\n" . str_repeat('x', 1_000_000);

        self::assertSame('OK', $redis->command('SET', 'key', $bytes));
        self::assertSame($bytes, $redis->command('GET', 'key'));
        self::assertNull($redis->command('GET', 'other'));
        self::assertSame(-2, $redis->command('TTL', 'other'));
        self::assertSame(
            [1, ['two', [], null], ''],
            $redis->command('EVAL', "return {1, {'two', {}, false}, ''}", '0'),
        );
        $failure = self::thrown(TemporaryRedisException::class, static fn() => $redis->command('HGET', 'key', 'field'));
        self::assertStringStartsWith('Redis answered HGET with an error: WRONGTYPE ', $failure->getMessage());
        self::assertStringStartsWith('WRONGTYPE ', $failure->output);
        $this->expectException(\ValueError::class);
        $redis->command();
    }

    public function testALateAnswerIsReportedAsSuch(): void
    {
        $redis = TemporaryRedis::start([], new TemporaryRedisOptions(timeout: 1.2));

        $this->expectException(TemporaryRedisException::class);
        $this->expectExceptionMessage('Redis did not answer BLPOP: the time limit was exceeded');
        $redis->command('BLPOP', 'nothing', '0');
    }

    public function testByDefaultItLosesAndEvictsNothing(): void
    {
        $redis = TemporaryRedis::start();

        self::assertSame(
            ['yes', 'everysec', '', 'noeviction'],
            self::settings($redis, 'appendonly', 'appendfsync', 'save', 'maxmemory-policy'),
        );
    }

    public function testItsSettingsApplyWhateverTheirTypes(): void
    {
        $redis = TemporaryRedis::start([
            'appendonly' => false,
            'AppendFsync' => 'always',
            'save' => '900 1 300 10',
            'maxmemory' => '10mb',
            'maxclients' => 77,
            'active-defrag-threshold-lower' => 11,
            'user' => 'worker on >secret ~jobs:* +get',
        ]);

        self::assertSame(
            ['no', 'always', '900 1 300 10', '10485760', '77', '11'],
            self::settings(
                $redis,
                'appendonly',
                'appendfsync',
                'save',
                'maxmemory',
                'maxclients',
                'active-defrag-threshold-lower',
            ),
        );
        self::assertSame(['default', 'worker'], $redis->command('ACL', 'USERS'));
    }

    public function testItsAddressAndItsFilesAreItsOwnAffair(): void
    {
        foreach ([
            'port',
            'PORT',
            'bind',
            'unixsocket',
            'dir',
            'requirepass',
            'daemonize',
            'logfile',
            'pidfile',
            'tls-port',
        ] as $name) {
            $error = self::thrown(\ValueError::class, static fn() => TemporaryRedis::start([$name => 'x']));
            $message = "A temporary Redis chooses its own {$name}. Remove this setting";
            self::assertSame($message, $error->getMessage());
        }
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage(
            'The setting maxmemory contains a line break or a NUL byte, which redis.conf cannot hold',
        );
        TemporaryRedis::start(['maxmemory' => "10mb\nport 7"]);
    }

    public function testItsPasswordIsInNoCommandLineNoEnvironmentAndNoDump(): void
    {
        // A server overwrites its command line, so the test reads the original one here.
        $server = $this->script(
            'redis-server',
            "printf '%s\\n' \"\$@\" >{$this->path('seen')}; env >>{$this->path('seen')}; "
                . 'exec $(command -v redis-server || command -v valkey-server) "$@"',
        );
        $redis = TemporaryRedis::start([], new TemporaryRedisOptions(binary: $server));
        $seen = implode("\n", Text::lines($this->path('seen')));
        self::assertStringContainsString('LC_ALL=C', $seen);
        foreach (array_filter(
            array_map(intval(...), Text::names('/proc')),
            static fn(int $pid): bool => $pid > 0,
        ) as $pid) {
            $seen .= @file_get_contents("/proc/{$pid}/cmdline") . @file_get_contents("/proc/{$pid}/environ");
        }
        ob_start();
        var_dump($redis);
        $seen .= ob_get_clean() . print_r($redis, true) . $redis->log();

        self::assertStringContainsString($redis->directory, $seen);
        self::assertStringNotContainsString($redis->password, $seen);
        self::assertSame(0o40700, fileperms($redis->directory));
        self::assertSame(0o100600, fileperms("{$redis->directory}/redis.conf"));
    }

    public function testItTalksTlsWithTheCertificateThatItIsGiven(): void
    {
        $authority = new Certificates($this->path());
        [$certificate, $key] = $authority->forServer('127.0.0.1');
        $redis = TemporaryRedis::start([], new TemporaryRedisOptions(certificate: $certificate, key: $key));
        $address = Address::parse($redis->tlsUrl());

        self::assertTrue($address->tls);
        self::assertNotSame("tcp://127.0.0.1:{$redis->port}", $address->uri());
        $uri = 'tls' . substr($address->uri(), 3);
        self::assertSame(
            "+OK\r\n",
            self::firstAnswer($uri, "AUTH {$redis->password}", ['cafile' => $authority->authority]),
        );
        $stranger = new Certificates($this->path(), 'A stranger');
        self::assertFalse(
            @stream_socket_client($uri, context: stream_context_create(['ssl' => ['cafile' => $stranger->authority]])),
        );
        self::assertSame('1', $redis->command('ECHO', '1'));
        $this->expectException(TemporaryRedisException::class);
        $this->expectExceptionMessage("The file {$this->path('none')} could not be read");
        TemporaryRedis::start([], new TemporaryRedisOptions(certificate: $certificate, key: $this->path('none')));
    }

    public function testThereIsNoTlsWithoutACertificate(): void
    {
        $redis = TemporaryRedis::start();

        $this->expectException(\LogicException::class);
        $this->expectExceptionMessage('This temporary Redis has no certificate');
        $redis->tlsUrl();
    }

    public function testACertificateComesWithItsKeyAndATimeoutIsATime(): void
    {
        foreach ([
            ['x', null, 1.0],
            [null, 'x', 1.0],
            [null, null, 0.0],
            [null, null, \NAN],
        ] as [$certificate, $key, $timeout]) {
            $error = self::thrown(
                \ValueError::class,
                static fn() => new TemporaryRedisOptions(null, $certificate, $key, $timeout),
            );
            self::assertMatchesRegularExpression(
                '/^(A certificate needs its private key|The timeout must be more than 0 seconds)/',
                $error->getMessage(),
            );
        }
    }

    public function testARestartKeepsDataAndAddresses(): void
    {
        $redis = TemporaryRedis::start();
        $redis->command('SET', 'kept', '1');
        [$pid, $address] = [$redis->pid(), $redis->url()];

        $redis->restart();

        self::assertNotSame($pid, $redis->pid());
        self::assertSame($address, $redis->url());
        self::assertSame("+OK\r\n", self::firstAnswer(Address::parse($address)->uri(), "AUTH {$redis->password}"));
        self::assertSame('1', $redis->command('GET', 'kept'));
        self::assertStringContainsString('User requested shutdown', $redis->log());
    }

    public function testAKilledServerKeepsWhatItAppendedAndStartsAgain(): void
    {
        $redis = TemporaryRedis::start();
        $redis->command('SET', 'kept', '1');
        $pid = (int) $redis->pid();
        self::assertTrue(Processes::isAlive($pid));

        $redis->kill();

        self::assertFalse(Processes::isAlive($pid));
        self::assertNull($redis->pid());
        $failure = self::thrown(TemporaryRedisException::class, static fn() => $redis->command('GET', 'kept'));
        self::assertSame('Redis did not answer CONNECT: connection refused', $failure->getMessage());
        $redis->restart();
        self::assertSame('1', $redis->command('GET', 'kept'));
        $redis->kill();
        $redis->stop();
        self::assertNothingLeft($redis->directory);
    }

    public function testAServerWithoutAnAppendOnlyFileStartsAgainEmpty(): void
    {
        $redis = TemporaryRedis::start(['appendonly' => 'no']);
        $redis->command('SET', 'lost', '1');

        $redis->kill();
        $redis->restart();

        self::assertNull($redis->command('GET', 'lost'));
    }

    public function testAServerThatLoadsItsDataIsNotReady(): void
    {
        $redis = TemporaryRedis::start(['key-load-delay' => 2_000, 'loading-process-events-interval-bytes' => 1_024]);
        $redis->command('EVAL', "for i = 1, 200 do redis.call('SET', 'key:' .. i, string.rep('x', 100)) end", '0');
        $redis->command('BGREWRITEAOF'); // only a snapshot loads slowly
        Eventually::holdsByItself(
            static fn(): bool => \in_array('aof_rewrite_in_progress:0', self::persistence($redis), true),
            'it is written',
        );
        $redis->kill();

        $redis->restart();

        self::assertSame(200, $redis->command('DBSIZE'));
    }

    public function testAServerThatWasKilledStartsAgainAlsoWhileItsChildIsBusy(): void
    {
        $redis = TemporaryRedis::start(['rdb-key-save-delay' => 60_000_000]);
        $redis->command('SET', 'kept', '1');
        $redis->command('BGSAVE');
        $children = array_keys(Processes::childrenOf((int) $redis->pid()));
        self::assertCount(1, $children);

        $redis->kill();
        self::assertTrue(Processes::isAlive($children[0]));
        $redis->restart();

        self::assertFalse(Processes::isAlive($children[0]));
        self::assertSame('1', $redis->command('GET', 'kept'));
        $redis->command('BGSAVE');
        $redis->stop();
        self::assertNothingLeft($redis->directory);
    }

    public function testAProgramThatIsNotThereIsMissed(): void
    {
        foreach ([
            'no-redis-server' => 'No Redis server was found: neither PATH nor /usr/local/bin, /usr/bin, /usr/sbin, '
                . '/opt/homebrew/bin has no-redis-server. On Debian, install the package redis-server, '
                . 'or set the path of a server with TemporaryRedisOptions(binary: ...).',
            $this->path('redis-server') => "TemporaryRedisOptions::\$binary is '{$this->path('redis-server')}', "
                . 'which is not an executable file',
        ] as $binary => $message) {
            $failure = self::thrown(
                TemporaryRedisException::class,
                static fn() => TemporaryRedis::start([], new TemporaryRedisOptions(binary: $binary)),
            );
            self::assertSame($message, $failure->getMessage());
        }
    }

    public function testTheProgramIsTheOneThatWasAskedForByNameOrPath(): void
    {
        $server = $this->script('valkey-server', 'echo "I am $0 and read $(basename "$1")"; exit 1');
        $path = getenv('PATH');
        putenv("PATH={$this->path()}:{$path}");
        try {
            foreach (['valkey-server', $server] as $binary) {
                $failure = self::thrown(
                    TemporaryRedisException::class,
                    static fn() => TemporaryRedis::start([], new TemporaryRedisOptions(binary: $binary)),
                );
                self::assertSame(
                    "The Redis server ended before it was ready; the end of its log:\n"
                        . "I am {$server} and read redis.conf",
                    $failure->getMessage(),
                );
            }
        } finally {
            putenv("PATH={$path}");
        }
    }

    public function testTheLogOfAServerThatDoesNotStartIsInTheMessage(): void
    {
        $failure = self::thrown(
            TemporaryRedisException::class,
            static fn() => TemporaryRedis::start(['nonsense' => true]),
        );
        self::assertStringStartsWith(
            'The Redis server ended before it was ready; the end of its log:',
            $failure->getMessage(),
        );
        self::assertStringContainsString('nonsense yes', $failure->output);
    }

    private static function called(): string
    {
        return 'Redis';
    }

    private static function startOne(?float $timeout = null): TemporaryRedis
    {
        return TemporaryRedis::start([], $timeout === null ? null : new TemporaryRedisOptions(timeout: $timeout));
    }

    /** @return list<mixed> */
    private static function settings(TemporaryRedis $redis, string ...$names): array
    {
        return array_map(
            static fn(string $name): mixed => ((array) $redis->command('CONFIG', 'GET', $name))[1] ?? null,
            array_values($names),
        );
    }

    /** @return list<string> */
    private static function persistence(TemporaryRedis $redis): array
    {
        $info = $redis->command('INFO', 'persistence');

        return \is_string($info) ? explode("\r\n", $info) : [];
    }

    /** @param array<string, string> $tls options of the ssl context */
    private static function firstAnswer(string $uri, string $line, array $tls = []): string
    {
        $stream = stream_socket_client($uri, context: stream_context_create(['ssl' => $tls]));
        self::assertNotFalse($stream);
        fwrite($stream, "{$line}\r\n");
        $answer = (string) fgets($stream);
        fclose($stream);

        return $answer;
    }
}

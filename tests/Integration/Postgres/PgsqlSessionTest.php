<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Postgres;

use Amp\CancelledException;
use Amp\TimeoutCancellation;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\TestCase;
use Revolt\EventLoop;
use Spindle\Postgres\ConnectionClosedException;
use Spindle\Postgres\ConnectionLostException;
use Spindle\Postgres\Internal\Pgsql\Cursors;
use Spindle\Postgres\Internal\Pgsql\Libpq;
use Spindle\Postgres\Internal\Session;
use Spindle\Postgres\Internal\SessionFactory;
use Spindle\Postgres\InvalidParameterException;
use Spindle\Postgres\Notification;
use Spindle\Postgres\PostgresConnection;
use Spindle\Postgres\PostgresDriver;
use Spindle\Postgres\PostgresOptions;
use Spindle\Postgres\QueryCancelledException;
use Spindle\Postgres\QueryException;
use Spindle\Postgres\TlsMode;
use Spindle\Postgres\UniqueViolationException;
use Spindle\Postgres\UnsupportedException;
use Spindle\Tests\Async;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\Eventually;
use Spindle\Tests\LeavesNothing;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Postgres\Certificates;
use Spindle\Tests\Postgres\Cluster;
use Spindle\Tests\Postgres\FakeConnection;
use Spindle\Tests\Postgres\FakeServer;
use Spindle\Tests\Postgres\FaultyProxy;
use Spindle\Tests\Postgres\Message;
use Spindle\Tests\Postgres\TypeCases;
use Spindle\Tests\Postgres\UsesCluster;
use Spindle\Tests\Postgres\Watchdog;
use Spindle\Tests\Scale;
use Symfony\Component\Process\Process;

use function Amp\delay;

/** Tests code that only ext-pgsql needs. The conformance tests cover what all drivers have in common. */
#[RequiresPhpExtension('pgsql')]
#[RequiresPhpExtension('sockets')]
final class PgsqlSessionTest extends TestCase
{
    use EndsInTime;
    use LeavesNothing;
    use OwnDirectory;
    use UsesCluster;

    public function testBothDriversGiveTheSameValues(): void
    {
        Cluster::ask(TypeCases::SETUP);
        $sessions = [self::open(), self::open(driver: PostgresDriver::Native)];
        foreach (TypeCases::roundTrips() as $name => [$type, $parameter]) {
            // Once while the statement is new, and once when it is known.
            foreach ([1, 2] as $_) {
                self::assertAlike(
                    $name,
                    ...array_map(
                        static fn(Session $session): mixed
                            => TypeCases::comparable($session->query("SELECT \$1::{$type}", [$parameter])->value()),
                        $sessions,
                    ),
                );
            }
        }
        foreach (TypeCases::outputs() as $name => [$expression]) {
            self::assertAlike(
                $name,
                ...array_map(
                    static fn(Session $session): mixed
                        => TypeCases::comparable($session->query("SELECT {$expression}")->value()),
                    $sessions,
                ),
            );
        }
        foreach (TypeCases::settings() as $name => [$setting, $value, $expression]) {
            self::assertAlike(
                $name,
                ...array_map(static function (Session $session) use ($setting, $value, $expression): mixed {
                    $session->script("SET {$setting} TO '{$value}'");

                    return TypeCases::comparable($session->query("SELECT {$expression}")->value());
                }, $sessions),
            );
        }
        foreach (TypeCases::refused() as $name => [$type, $parameter]) {
            $messages = array_map(static function (Session $session) use ($type, $parameter): string {
                try {
                    return 'taken: ' . get_debug_type($session->query("SELECT \$1::{$type}", [$parameter])->value());
                } catch (InvalidParameterException $refusal) {
                    return $refusal->getMessage();
                }
            }, $sessions);
            self::assertAlike($name, ...$messages);
            self::assertStringNotContainsString('taken', $messages[0]);
        }
    }

    public function testBothDriversReportTheSameErrors(): void
    {
        $sessions = [self::open(), self::open(driver: PostgresDriver::Native)];
        $table = self::table('id int PRIMARY KEY, name text NOT NULL CHECK (name <> \'\')');
        $sessions[0]->query("INSERT INTO {$table} VALUES (1, 'a')");
        foreach ([
            ['SELEC 1', []],
            ["SELECT\n 1 /\n \$1::int", [0]],
            ['SELECT $1::int', ['secret']],
            ["INSERT INTO {$table} VALUES (\$1, \$2)", [1, 'a']],
            ["INSERT INTO {$table} VALUES (\$1, \$2)", [2, null]],
            ["INSERT INTO {$table} VALUES (\$1, \$2)", [3, '']],
            [
                "DO 'BEGIN RAISE EXCEPTION USING MESSAGE = ''m'', DETAIL = ''d'', HINT = ''h'', "
                    . "ERRCODE = ''ZZ123'', TABLE = ''t'', COLUMN = ''c'', DATATYPE = ''y'', SCHEMA = ''s'', "
                    . "CONSTRAINT = ''n''; END'",
                [],
            ],
            ['SELECT nothing', []],
        ] as [$sql, $parameters]) {
            $received = array_map(static function (Session $session) use ($sql, $parameters): array {
                try {
                    $session->query($sql, $parameters);
                } catch (QueryException $error) {
                    return [
                        $error::class,
                        $error->getMessage(),
                        $error->detail,
                        $error->context,
                        ...array_diff_key(get_object_vars($error), ['xdebug_message' => 0]),
                    ];
                }

                return [];
            }, $sessions);
            self::assertNotSame([], $received[0]);
            self::assertSame($received[1], $received[0]);
        }
    }

    public function testALargeParameterStallsTheLoopOnlyForItsCopies(): void
    {
        $session = self::open();
        $text = str_repeat('x', 0x200_0000);
        $session->query('SELECT length($1::text)', ['']);

        $length = null;
        $gap = Watchdog::during(static function () use ($session, $text, &$length): void {
            $length = $session->query('SELECT length($1::text)', [$text])->value();
        });
        self::assertSame(0x200_0000, $length);
        // ext-pgsql itself waits in steps of 10 ms until the server has read everything.
        self::assertLessThan(1.0, $gap);
    }

    public function testALargeParameterIsCancelledAsItIsSent(): void
    {
        $proxy = FaultyProxy::before(Cluster::shared());
        $session = self::open(
            "host={$proxy->host} port={$proxy->port} user="
                . Cluster::shared()->user
                . ' password='
                . Cluster::shared()->password
                . ' dbname=postgres',
        );
        $session->query('SELECT length($1::text)', ['']);
        $proxy->pause();
        try {
            $session->query('SELECT length($1::text)', [str_repeat('x', 0x400_0000)], new TimeoutCancellation(0.05));
            self::fail('It was answered');
        } catch (CancelledException) {
        }
        $session->close();
        self::assertFalse($session->isOpen());
        $proxy->stop();
    }

    public function testClosingDoesNotWaitForRunningCalls(): void
    {
        $session = self::open();
        $future = Async::run(static fn() => $session->query('SELECT pg_sleep(1000)'));
        self::awaitActive($session->backendPid());
        $start = hrtime(true);
        $session->close();

        self::assertLessThan(5.0, (hrtime(true) - $start) / 1e9);
        try {
            $future->await();
            self::fail('It was answered');
        } catch (ConnectionClosedException) {
        }
        Eventually::holds(
            static fn(): bool
                => Cluster::ask('SELECT pid FROM pg_stat_activity WHERE pid = ' . $session->backendPid()) === [],
            'the server has ended it',
        );
    }

    public function testClosingDuringACopyDoesNotWait(): void
    {
        $session = self::open();
        $table = self::table('id int');
        try {
            $session->copyFrom("COPY {$table} FROM STDIN", (static function () use ($session): \Generator {
                yield str_repeat("1\n", 50_000);
                $session->close();
                yield str_repeat("1\n", 50_000);
            })(), null);
            self::fail('It was stored');
        } catch (ConnectionClosedException) {
        }
        self::assertSame([['count' => '0']], Cluster::ask("SELECT count(*) FROM {$table}"));
    }

    public function testThePhpScriptCanEndDuringACall(): void
    {
        $dsn = Cluster::shared()->dsn();
        $autoload = \dirname(__DIR__, 3) . '/vendor/autoload.php';
        foreach (['exit(3);', 'throw new \DomainException();', 'str_repeat("x", PHP_INT_MAX);'] as $end) {
            $script = $this->file('page.php', <<<PHP
                <?php
                require '{$autoload}';
                ini_set('display_errors', '0');
                ini_set('log_errors', '0');
                \$options = Spindle\\Postgres\\PostgresOptions::of('{$dsn}')
                    ->with(['driver' => Spindle\\Postgres\\PostgresDriver::ExtPgsql]);
                \$connection = Spindle\\Postgres\\PostgresConnection::connect(\$options);
                Revolt\\EventLoop::delay(0.1, static function (): void { {$end} });
                \$connection->query('SELECT pg_sleep(1000)');
                PHP);
            $process = new Process([\PHP_BINARY, $script], timeout: 10);
            self::assertNotSame(0, $process->run(), $end);
        }
    }

    public function testAnUnreferencedSessionIsClosedAtOnce(): void
    {
        $session = self::open();
        $pid = $session->backendPid();
        $session->query('SELECT 1');
        unset($session);

        Eventually::holds(
            static fn(): bool => Cluster::ask("SELECT pid FROM pg_stat_activity WHERE pid = {$pid}") === [],
            'the server has ended it',
        );
    }

    public function testALossIsReportedWithWhatTheServerSaid(): void
    {
        foreach ([false, true] as $busy) {
            $session = self::open();
            $reason = null;
            $session->onClose(static function (?\Throwable $why) use (&$reason): void {
                $reason = $why;
            });
            $future = $busy ? Async::run(static fn() => $session->query('SELECT pg_sleep(1000)')) : null;
            $busy ? self::awaitActive($session->backendPid()) : null;
            Cluster::ask("SELECT pg_terminate_backend({$session->backendPid()})");
            Eventually::holds(static fn(): bool => !$session->isOpen(), 'it is noticed');

            self::assertInstanceOf(ConnectionLostException::class, $reason);
            self::assertSame('57P01', $reason->sqlState);
            self::assertStringContainsString(
                'terminating connection due to administrator command',
                $reason->getMessage(),
            );
            try {
                $future === null ? $session->query('SELECT 1') : $future->await();
                self::fail('It was answered');
            } catch (ConnectionLostException $loss) {
                self::assertSame('57P01', $loss->sqlState);
                self::assertSame(!$busy, str_starts_with($loss->getMessage(), 'Nothing was sent'));
            }
        }
    }

    public function testTheReadTimeoutEndsTheConnection(): void
    {
        $proxy = FaultyProxy::before(Cluster::shared());
        $session = self::open(
            "host={$proxy->host} port={$proxy->port} user="
                . Cluster::shared()->user
                . ' password='
                . Cluster::shared()->password
                . ' dbname=postgres',
            readTimeout: 0.1,
        );
        self::assertSame(1, $session->query('SELECT 1')->value());
        $proxy->swallow();
        try {
            $session->query('SELECT 1');
            self::fail('It was answered');
        } catch (ConnectionLostException $loss) {
            self::assertStringContainsString('the server sent nothing within 0.1 s', $loss->getMessage());
        }
        $proxy->stop();
    }

    public function testNoticesDoNotAccumulate(): void
    {
        $session = self::open();
        $notice = "DO 'BEGIN RAISE NOTICE ''%'', repeat(''x'', 10000); END'";
        $session->query($notice);
        $before = memory_get_usage();
        for ($i = 0; $i < 200; ++$i) {
            $session->query($notice);
        }
        self::assertLessThan(0x8_0000, memory_get_usage() - $before);
    }

    public function testNotificationsArriveWhileIdleAndBetween(): void
    {
        $session = self::open();
        /** @var \ArrayObject<int, string> $received */
        $received = new \ArrayObject();
        $session->onNotification(
            static fn(Notification $notification)
                => $received[] = "{$notification->channel} {$notification->payload} {$notification->pid}",
        );
        $session->query('LISTEN a');
        $session->query("SELECT pg_notify('a', 'own')");
        self::assertSame(["a own {$session->backendPid()}"], (array) $received);
        $pid = Cluster::ask("SELECT pg_notify('a', 'other'), pg_backend_pid() AS pid")[0]['pid'];
        Eventually::holds(static fn(): bool => \count($received) === 2, 'it arrives');
        self::assertSame("a other {$pid}", $received[1]);

        $session->pause(true);
        Cluster::ask("SELECT pg_notify('a', 'later')");
        delay(0.01);
        self::assertCount(2, $received);
        $session->pause(false);
        Eventually::holds(static fn(): bool => \count($received) === 3, 'it arrives');
        $session->onNotification(null);
    }

    public function testStatementsThatWereDroppedFromTheCacheAreDeallocated(): void
    {
        $session = self::open(statementCache: 5);
        for ($i = 0; $i < 100; ++$i) {
            self::assertSame($i, $session->query("SELECT \$1::int + {$i} - {$i}", [$i])->value());
        }
        self::assertLessThan(30, $session->query('SELECT count(*) FROM pg_prepared_statements')->value());

        $session->query('BEGIN');
        for ($i = 0; $i < 100; ++$i) {
            $session->query("SELECT {$i}");
        }
        self::assertSame('T', $session->transactionStatus());
        $session->query('COMMIT');
        $session->query('SELECT 1');
        self::assertLessThan(30, $session->query('SELECT count(*) FROM pg_prepared_statements')->value());
    }

    public function testWithoutACacheNothingStaysPrepared(): void
    {
        $session = self::open(statementCache: 0);
        foreach (['I', 'T'] as $status) {
            self::assertSame(
                [['a', "\0\\", [1, null], true, 5]],
                $session->query(
                    'SELECT $1::text, $2::bytea, $3::int[], $4::bool, $5::int',
                    ['a', "\0\\", [1, null], true, 5],
                )->lists(),
            );
            self::assertSame(7, $session->query('SELECT $1::int', [7])->value());
            self::assertSame(0, $session->query('SELECT count(*) FROM pg_prepared_statements')->value());
            self::assertSame($status, $session->transactionStatus());
            if ($status === 'I') {
                $session->query('BEGIN');
            }
        }
        $session->query('COMMIT');
        try {
            $session->query('SELEC $1', ['a']);
            self::fail('It was executed');
        } catch (QueryException $error) {
            self::assertSame(['42601', 1], [$error->sqlState, $error->position]);
        }
        self::assertSame('I', $session->transactionStatus());
    }

    public function testAStatementThatTheServerForgotIsPreparedAgain(): void
    {
        $session = self::open();
        $table = self::table('a int');
        foreach (['DEALLOCATE ALL', "ALTER TABLE {$table} ADD b text DEFAULT 'x'"] as $change) {
            $session->query("INSERT INTO {$table} (a) VALUES (\$1)", [1]);
            $session->query("SELECT * FROM {$table}");
            $session->script($change);
            $session->query("INSERT INTO {$table} (a) VALUES (\$1)", [1]);
            self::assertIsArray($session->query("SELECT * FROM {$table} LIMIT 1")->one());
            self::assertCount(
                $change === 'DEALLOCATE ALL' ? 1 : 2,
                $session->query("SELECT * FROM {$table}")->columnNames(),
            );
        }
        $session->query('BEGIN');
        $session->query("SELECT * FROM {$table}");
        $session->query("ALTER TABLE {$table} ADD c int");
        try {
            $session->query("SELECT * FROM {$table}");
            self::fail('It was executed');
        } catch (QueryException $error) {
            self::assertSame(['0A000', 'E'], [$error->sqlState, $session->transactionStatus()]);
        }
        $session->query('ROLLBACK');
    }

    public function testAnAbandonedStreamDoesNotBlockItsTransaction(): void
    {
        $session = self::open();
        $table = self::table('id int');
        $session->query("INSERT INTO {$table} SELECT generate_series(1, 1000)");
        $session->query('BEGIN');
        $session->query('SAVEPOINT a');
        $lost = $session->stream("SELECT * FROM {$table}", [], null);
        self::assertSame(['id' => 1], $lost->current());
        unset($lost);
        $session->query('ROLLBACK TO SAVEPOINT a');
        $stream = $session->stream("SELECT * FROM {$table}", [], null);
        self::assertSame(['id' => 1], $stream->current());
        unset($stream);
        // TRUNCATE fails while a cursor on the table is open.
        $session->query("TRUNCATE {$table}");
        $session->query('COMMIT');
        self::assertSame(0, $session->query("SELECT count(*) FROM {$table}")->value());
    }

    public function testAStatementWithoutACursorIsStreamed(): void
    {
        $session = self::open();
        $table = self::table('id int');
        $session->query('BEGIN');
        $insert = "INSERT INTO {$table} SELECT generate_series(1, 3)";
        self::assertSame(
            [['id' => 1], ['id' => 2], ['id' => 3]],
            iterator_to_array($session->stream("{$insert} RETURNING id", [], null)),
        );
        self::assertSame(
            [['id' => 1], ['id' => 2], ['id' => 3]],
            iterator_to_array($session->stream("WITH a AS ({$insert} RETURNING id) SELECT * FROM a", [], null)),
        );
        self::assertSame(
            [['i' => 2]],
            iterator_to_array($session->stream(
                '/* /* ; */ */ WITH a AS (SELECT 1 AS i) SELECT i + $1 AS i FROM a -- for update',
                [1],
                null,
            )),
        );
        self::assertSame([['TimeZone' => 'UTC']], iterator_to_array($session->stream('SHOW TimeZone', [], null)));
        $session->query('ROLLBACK');
    }

    public function testOnlyReadingStatementsHaveACursor(): void
    {
        foreach ([
            'SELECT 1',
            ' ( select 1)',
            'VALUES (1)',
            'TABLE t',
            "-- INSERT\nSELECT 'INTO', \"UPDATE\", \$a\$ delete \$a\$, E'\\' INTO'",
            'WITH a AS (SELECT 1) SELECT 1 FROM a FOR UPDATE',
            'SELECT 1 FOR NO KEY UPDATE',
        ] as $sql) {
            self::assertTrue(Cursors::canDeclare($sql), $sql);
        }
        foreach ([
            'INSERT INTO t VALUES (1)',
            'SELECT 1 INTO t',
            'WITH a AS (DELETE FROM t RETURNING 1) SELECT 1',
            'WITH a AS (SELECT 1) UPDATE t SET a = 1',
            'SHOW a',
            'EXPLAIN SELECT 1',
            'FETCH a',
            'selection',
            '',
        ] as $sql) {
            self::assertFalse(Cursors::canDeclare($sql), $sql);
        }
    }

    public function testTheReasonOfARefusedCopyIsReportedInFull(): void
    {
        $session = self::open();
        $table = self::table('id int PRIMARY KEY');
        // With few data the server has not answered when they end; with many it has answered long before.
        foreach ([1, 3_000_000] as $more) {
            $read = 0;
            try {
                $session->copyFrom("COPY {$table} FROM STDIN", (static function () use ($more, &$read): \Generator {
                    yield "1\n";
                    yield "1\n";
                    for (; $read < $more; ++$read) {
                        yield "2\n";
                    }
                })(), null);
                self::fail('It was stored');
            } catch (UniqueViolationException $error) {
                self::assertSame(
                    [$table, "{$table}_pkey", 'id', 'Key (id)=(1) already exists.', 'public'],
                    [$error->table, $error->constraint, $error->column, $error->detail, $error->schema],
                );
                self::assertSame(
                    "duplicate key value violates unique constraint \"{$table}_pkey\" (SQLSTATE 23505)",
                    $error->getMessage(),
                );
                self::assertStringContainsString("COPY {$table}, line 2", (string) $error->context);
            }
            self::assertLessThan(200_000, $read);
        }
        self::assertSame(0, $session->query("SELECT count(*) FROM {$table}")->value());
    }

    public function testNoticesDuringACopyDoNotFailIt(): void
    {
        $session = self::open();
        $table = self::table('id int');
        Cluster::ask(
            "CREATE FUNCTION {$table}_f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE NOTICE ''%'', "
                . "NEW.id; RETURN NEW; END'; CREATE TRIGGER t BEFORE INSERT ON {$table} FOR EACH ROW "
                . "EXECUTE FUNCTION {$table}_f()",
        );
        $ignores = \ini_get('pgsql.ignore_notice');
        foreach (['0', '1'] as $ignore) {
            ini_set('pgsql.ignore_notice', $ignore);
            try {
                self::assertSame(
                    30_000,
                    $session->copyFrom("COPY {$table} FROM STDIN", (static function (): \Generator {
                        for ($i = 0; $i < 30_000; ++$i) {
                            yield "{$i}\n";
                        }
                    })(), null),
                );
            } finally {
                ini_set('pgsql.ignore_notice', (string) $ignores);
            }
        }
        self::assertSame(60_000, $session->query("SELECT count(*) FROM {$table}")->value());
    }

    public function testAnAbandonedCopyStoresNothingInAnyFormat(): void
    {
        $session = self::open();
        foreach (['int', 'text'] as $type) {
            $table = self::table("id {$type}");
            foreach (['', '(FORMAT csv)', '(FORMAT csv, HEADER)'] as $format) {
                foreach (['', '1', "1\n", "a\n1\n", '"', "\"a\"\n\"1", str_repeat("1\n", 50_000)] as $data) {
                    try {
                        $session->copyFrom(
                            "COPY {$table} FROM STDIN {$format}",
                            (static function () use ($data): \Generator {
                                yield $data;
                                throw new \DomainException('enough');
                            })(),
                            null,
                        );
                        self::fail('It was stored');
                    } catch (\DomainException $thrown) {
                        self::assertSame('enough', $thrown->getMessage());
                    }
                    self::assertSame(0, $session->query("SELECT count(*) FROM {$table}")->value());
                }
            }
        }
    }

    public function testBytesThatPhpCanNotSendAreRefused(): void
    {
        $session = self::open();
        $table = self::table('id int');
        $source = self::open(driver: PostgresDriver::Native);
        $binary = implode(
            '',
            iterator_to_array(
                $source->copyTo('COPY (SELECT generate_series(1, 3)) TO STDOUT (FORMAT binary)', null),
                false,
            ),
        );
        if (Libpq::hasCopyFunctions()) {
            self::assertSame(3, $session->copyFrom("COPY {$table} FROM STDIN (FORMAT binary)", [$binary], null));

            return;
        }
        foreach ([[$binary], ["1\n", "2\n\0"]] as $data) {
            try {
                $session->copyFrom("COPY {$table} FROM STDIN", $data, null);
                self::fail('It was sent');
            } catch (UnsupportedException $refusal) {
                self::assertStringContainsString('NUL', $refusal->getMessage());
            }
        }
        self::assertSame(0, $session->query("SELECT count(*) FROM {$table}")->value());
    }

    public function testACopyInAScriptIsRefused(): void
    {
        $session = self::open();
        $table = self::table('id int');
        try {
            $session->script(
                "INSERT INTO {$table} VALUES (1); COPY {$table} FROM STDIN; INSERT INTO {$table} VALUES (2)",
            );
            self::fail('It was executed');
        } catch (QueryCancelledException) {
        }
        $session->script("COPY {$table} TO STDOUT; INSERT INTO {$table} VALUES (3)");
        self::assertSame([3], $session->query("SELECT * FROM {$table}")->column());
    }

    public function testCancellingBehindAPoolerClosesTheConnection(): void
    {
        // The backend that answers is not the one that the login named.
        $proxy = FakeServer::start(static function (FakeConnection $connection): void {
            $connection->welcome(pid: 1);
            for (;;) {
                [$type, $payload] = $connection->read();
                if ($type === 'P') {
                    $connection->readToEnd();
                }
                $connection->write(
                    str_contains($payload, 'pg_backend_pid()')
                        ? self::row('f')
                        : Message::emptyQueryResponse() . Message::readyForQuery(),
                );
            }
        });
        $session = self::open($proxy->dsn());
        try {
            $session->query('SELECT 1', [], new TimeoutCancellation(0.05));
            self::fail('It was answered');
        } catch (CancelledException) {
        }
        Eventually::holds(static fn(): bool => !$session->isOpen(), 'it is given up');
        $proxy->stop();
    }

    public function testAllBytesThatTlsHasDecryptedAreRead(): void
    {
        [$certificate, $key] = (new Certificates($this->path()))->forServer('127.0.0.1');
        $size = 0;
        // A proxy may send records of the largest size.
        $server = FakeServer::start(
            static function (FakeConnection $connection) use ($certificate, $key, &$size): void {
                $connection->readRequest();
                $connection->startTls($certificate, $key);
                $connection->welcome();
                for (;;) {
                    [$type, $payload] = $connection->read();
                    if ($type === 'P') {
                        $executes = \in_array('B', array_column($connection->readUntil('S'), 0), true);
                        $connection->write(
                            Message::parseComplete()
                                . ($executes ? self::answerOf(
                                    $size - \strlen(Message::parseComplete()),
                                ) : Message::readyForQuery()),
                        );
                    } elseif ($type === 'B') {
                        $connection->readUntil('S');
                        $connection->write(self::answerOf($size));
                    } else {
                        $connection->write(
                            str_contains($payload, 'repeat') ? self::row(str_repeat(' ', 60_000)) : self::row('t'),
                        );
                    }
                }
            },
        );
        $session = self::open($server->dsn(), tls: TlsMode::Require, settings: []);
        mt_srand(Scale::seed());
        foreach ([
            32_768,
            49_152,
            65_536,
            ...array_map(static fn(): int => mt_rand(9_000, 400_000), range(1, 100)),
        ] as $size) {
            self::assertGreaterThan(
                0,
                \count($session->query('SELECT 1', [], new TimeoutCancellation(2))),
                "{$size} bytes",
            );
        }
        $session->close();
        $server->stop();
    }

    public function testQueriesOfManyFibersRunOneAfterTheOther(): void
    {
        $session = self::open();
        $futures = [];
        for ($i = 0; $i < 50; ++$i) {
            $futures[] = Async::run(static fn(): mixed => $session->query('SELECT $1::int', [$i])->value());
        }
        delay(0);
        self::assertSame(50, $session->inFlight());
        self::assertFalse($session->canSend());
        self::assertSame(range(0, 49), \Amp\Future\await($futures));
        self::assertSame(0, $session->inFlight());
        self::assertTrue($session->canSend());
    }

    public function testAnIdleConnectionDoesNotKeepTheLoopRunning(): void
    {
        $session = self::open();
        $session->query('SELECT 1');
        $start = hrtime(true);
        EventLoop::run();
        self::assertLessThan(5.0, (hrtime(true) - $start) / 1e9);
        self::assertTrue($session->isOpen());
    }

    public function testTheDriverIsChosenByTheOptions(): void
    {
        $connection = PostgresConnection::connect(
            PostgresOptions::of(Cluster::shared()->dsn())->with(['driver' => PostgresDriver::ExtPgsql]),
        );
        $this->expectException(UnsupportedException::class);
        $connection->copyTo('COPY (SELECT 1) TO STDOUT')->current();
    }

    private static function assertAlike(string $claim, mixed $one, mixed $other = null): void
    {
        self::assertSame($other, $one, $claim);
    }

    /** @param mixed ...$changes options by name */
    private static function open(?string $dsn = null, mixed ...$changes): Session
    {
        /** @var array<string, mixed> $named */
        $named = ['driver' => PostgresDriver::ExtPgsql, 'settings' => ['TimeZone' => 'UTC'], ...$changes];

        return (new SessionFactory(PostgresOptions::of($dsn ?? Cluster::shared()->dsn())->with($named)))->open(null);
    }

    private static function answerOf(int $bytes): string
    {
        $answer = Message::bindComplete() . Message::rowDescription(['p' => 25]);
        $end = Message::commandComplete('SELECT 1') . Message::readyForQuery();
        $rest = $bytes - \strlen($answer . $end . Message::dataRow(''));
        while ($rest > 3_000) {
            $row = Message::dataRow(str_repeat('x', mt_rand(10, min(20_000, $rest - 100))));
            $answer .= $row;
            $rest -= \strlen($row);
        }

        return $answer . Message::dataRow(str_repeat('x', $rest)) . $end;
    }

    private static function row(string $value): string
    {
        return Message::rowDescription(['value' => 25])
            . Message::dataRow($value)
            . Message::commandComplete('SELECT 1')
            . Message::readyForQuery();
    }

    private static function table(string $definition): string
    {
        $name = 't_' . bin2hex(random_bytes(6));
        Cluster::ask("CREATE TABLE {$name} ({$definition})");

        return $name;
    }

    private static function awaitActive(int $pid): void
    {
        Eventually::holds(
            static fn(): bool => (Cluster::ask(
                "SELECT wait_event FROM pg_stat_activity WHERE pid = {$pid}",
            )[0]['wait_event'] ?? '') === 'PgSleep',
            'the server works',
        );
    }
}

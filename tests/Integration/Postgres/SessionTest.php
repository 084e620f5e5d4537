<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Postgres;

use Amp\TimeoutCancellation;
use Spindle\Postgres\ConnectionClosedException;
use Spindle\Postgres\Internal\Protocol\PipelinedSession;
use Spindle\Postgres\Internal\SessionFactory;
use Spindle\Postgres\MultipleStatementsException;
use Spindle\Postgres\PostgresOptions;
use Spindle\Postgres\TlsMode;
use Spindle\Postgres\UniqueViolationException;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Postgres\Certificates;
use Spindle\Tests\Postgres\Cluster;
use Spindle\Tests\Postgres\FakeConnection;
use Spindle\Tests\Postgres\FakeServer;
use Spindle\Tests\Postgres\Message;
use Spindle\Tests\Postgres\UsesCluster;
use Spindle\Tests\Postgres\Watchdog;
use Spindle\Tests\Scale;
use Spindle\Tests\TidyTestCase;
use Symfony\Component\Process\Process;

/** Tests sessions with large and unusual data, and their end at an unusual time. */
final class SessionTest extends TidyTestCase
{
    use CatchesThrown;
    use OwnDirectory;
    use UsesCluster;

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
        self::assertLessThan(1.0, $gap);
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

    public function testACopyIsReadWithTheSettingOfBackslashesInStrings(): void
    {
        $one = "COPY (SELECT 'a\\'; b') TO STDOUT";
        $two = "COPY (SELECT 'a\\'') TO STDOUT; SELECT 1 --') TO STDOUT";
        $options = PostgresOptions::fromDsn(Cluster::shared()->dsn())
            ->with(['settings' => ['standard_conforming_strings' => 'off', 'escape_string_warning' => 'off']]);
        $session = (new SessionFactory($options))->open(null);

        self::assertSame(["a'; b\n"], iterator_to_array($session->copyTo($one, null)));
        self::assertCopyIsRefused($session, $two);
        $session->query('SET standard_conforming_strings = on');
        self::assertCopyIsRefused($session, $one);
        $session->query('SET standard_conforming_strings = off');
        self::assertSame(["a'; b\n"], iterator_to_array($session->copyTo($one, null)));
        $session->close();
    }

    private static function assertCopyIsRefused(PipelinedSession $session, string $sql): void
    {
        self::thrown(MultipleStatementsException::class, static fn() => $session->copyTo($sql, null)->current());
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
                \$connection = Spindle\\Postgres\\PostgresConnection::connect('{$dsn}');
                Revolt\\EventLoop::delay(0.1, static function (): void { {$end} });
                \$connection->query('SELECT pg_sleep(1000)');
                PHP);
            $process = new Process([\PHP_BINARY, $script], timeout: 10);
            self::assertNotSame(0, $process->run(), $end);
        }
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
                    "duplicate key value violates unique constraint \"{$table}_pkey\" in line 2 (SQLSTATE 23505)",
                    $error->getMessage(),
                );
                self::assertStringContainsString("COPY {$table}, line 2", (string) $error->context);
            }
            self::assertLessThan(1_000_000, $read);
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
        self::assertSame(
            30_000,
            $session->copyFrom("COPY {$table} FROM STDIN", (static function (): \Generator {
                for ($i = 0; $i < 30_000; ++$i) {
                    yield "{$i}\n";
                }
            })(), null),
        );
        self::assertSame(30_000, $session->query("SELECT count(*) FROM {$table}")->value());
    }

    public function testAnAbandonedCopyStoresNothingInAnyFormat(): void
    {
        $session = self::open();
        foreach (['int', 'text'] as $type) {
            $table = self::table("id {$type}");
            foreach (['', '(FORMAT csv)', '(FORMAT csv, HEADER)'] as $format) {
                foreach (['', '1', "1\n", "a\n1\n", '"', "\"a\"\n\"1", str_repeat("1\n", 50_000)] as $data) {
                    $thrown = self::thrown(
                        \DomainException::class,
                        static fn() => $session->copyFrom(
                            "COPY {$table} FROM STDIN {$format}",
                            (static function () use ($data): \Generator {
                                yield $data;
                                throw new \DomainException('enough');
                            })(),
                            null,
                        ),
                    );
                    self::assertSame('enough', $thrown->getMessage());
                    self::assertSame(0, $session->query("SELECT count(*) FROM {$table}")->value());
                }
            }
        }
    }

    public function testBinaryDataAreCopiedUnchanged(): void
    {
        $session = self::open();
        $table = self::table('id int');
        $binary = implode(
            '',
            iterator_to_array(
                $session->copyTo('COPY (SELECT generate_series(1, 3)) TO STDOUT (FORMAT binary)', null),
                false,
            ),
        );

        self::assertSame(3, $session->copyFrom("COPY {$table} FROM STDIN (FORMAT binary)", [$binary], null));
        self::assertSame([1, 2, 3], $session->query("SELECT id FROM {$table} ORDER BY id")->column());
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
                    [$type] = $connection->read();
                    if ($type === 'P') {
                        $connection->readUntil('S');
                        $connection->write(self::answerOf($size));
                    } else {
                        $connection->write(self::row('t'));
                    }
                }
            },
        );
        $session = self::open($server->dsn(), tls: TlsMode::Require, statementCache: 0);
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

    /** @param mixed ...$changes options by name */
    private static function open(?string $dsn = null, mixed ...$changes): PipelinedSession
    {
        /** @var array<string, mixed> $named */
        $named = $changes;

        $options = PostgresOptions::fromDsn($dsn ?? Cluster::shared()->dsn())->with($named);

        return (new SessionFactory($options))->open(null);
    }

    private static function answerOf(int $bytes): string
    {
        $answer = Message::parseComplete()
            . Message::parameterDescription()
            . Message::rowDescription(['p' => Message::TEXT])
            . Message::bindComplete();
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
        return Message::rowDescription(['value' => Message::TEXT])
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
}

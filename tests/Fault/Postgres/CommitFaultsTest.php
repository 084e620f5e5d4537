<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Postgres;

use Amp\Cancellation;
use Amp\CancelledException;
use Amp\DeferredCancellation;
use Amp\TimeoutCancellation;
use PHPUnit\Framework\Attributes\DataProvider;
use Spindle\Postgres\CommitUnknownException;
use Spindle\Postgres\ConnectionLostException;
use Spindle\Postgres\PostgresConnection;
use Spindle\Postgres\PostgresLink;
use Spindle\Postgres\PostgresOptions;
use Spindle\Postgres\PostgresPool;
use Spindle\Postgres\SerializationFailureException;
use Spindle\Postgres\Transaction;
use Spindle\Postgres\TransactionAbortedException;
use Spindle\Tests\Async;
use Spindle\Tests\Eventually;
use Spindle\Tests\Postgres\Cluster;
use Spindle\Tests\Postgres\Direction;
use Spindle\Tests\Postgres\FakeConnection;
use Spindle\Tests\Postgres\FakeServer;
use Spindle\Tests\Postgres\FaultyProxy;
use Spindle\Tests\Postgres\UsesCluster;
use Spindle\Tests\Scale;
use Spindle\Tests\TidyTestCase;

/** Tests that a commit reports the truth: it was done, it was not, or that is unknown. */
final class CommitFaultsTest extends TidyTestCase
{
    use ComesToRest;
    use UsesCluster;

    private string $table;

    private FaultyProxy $proxy;

    /** @var list<int> server processes that a test has stopped */
    private array $stopped = [];

    protected function setUp(): void
    {
        $this->table = 'commit_' . bin2hex(random_bytes(4));
        // A COMMIT lasts the seconds in the row.
        Cluster::ask(<<<SQL
            CREATE TABLE {$this->table} (id int PRIMARY KEY, seconds float NOT NULL DEFAULT 0);
            CREATE FUNCTION {$this->table}() RETURNS trigger LANGUAGE plpgsql
                AS 'BEGIN PERFORM pg_sleep(NEW.seconds); RETURN NULL; END';
            CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON {$this->table} DEFERRABLE INITIALLY DEFERRED
                FOR EACH ROW WHEN (NEW.seconds > 0) EXECUTE FUNCTION {$this->table}();
            SQL);
        $this->proxy = FaultyProxy::before(Cluster::shared());
    }

    protected function tearDown(): void
    {
        $this->continueStopped();
        $this->proxy->stop();
        unset($this->proxy);
        Cluster::ask("DROP TABLE {$this->table}; DROP FUNCTION {$this->table}()");
    }

    /** @return iterable<string, array{Direction, bool}> */
    public static function cuts(): iterable
    {
        foreach (Direction::cases() as $direction) {
            yield "on the way {$direction->value}" => [$direction, false];
            yield "on the way {$direction->value}, by a reset" => [$direction, true];
        }
    }

    #[DataProvider('cuts')]
    public function testTheOutcomeOfACommitThatIsCutAnywhereIsNeverWrong(Direction $direction, bool $byReset): void
    {
        mt_srand(Scale::seed());
        $seen = [];
        $bytes = 0;
        do {
            $link = $this->connect();
            $outcome = Outcome::of(
                fn(): mixed
                    => $link->transaction(
                        function (Transaction $transaction) use ($direction, $bytes, $byReset): string {
                            $transaction->execute("INSERT INTO {$this->table} VALUES ({$bytes})");
                            $cut = $this->proxy->passed($direction) + $bytes;
                            $byReset
                                ? $this->proxy->resetAfter($cut, $direction)
                                : $this->proxy->closeAfter($cut, $direction);

                            return 'done';
                        },
                    ),
            );
            $link->close();
            $this->proxy->stop();
            $this->proxy = FaultyProxy::before(Cluster::shared());

            $committed = $this->settled() === [['id' => (string) $bytes]];
            Cluster::ask("TRUNCATE {$this->table}");
            $kind = $outcome === 'done' ? 'done' : get_debug_type($outcome);
            $seen[$kind . ($committed ? ', committed' : ', not committed')] = true;
            $bytes += Scale::of(10) === 10 ? 1 : mt_rand(1, 5);
        } while ($bytes < 500 && $outcome !== 'done');

        unset($seen['done, committed']);
        $unknown = CommitUnknownException::class;
        // If the server received all of it before the cut, the transaction is committed.
        $possible = $direction === Direction::ToServer
            ? ["{$unknown}, not committed", "{$unknown}, committed"]
            : ["{$unknown}, committed"];
        self::assertArrayHasKey($possible[0], $seen);
        self::assertSame([], array_diff(array_keys($seen), $possible));
        self::assertSame('done', $outcome);
        self::assertGreaterThan(20, $bytes);
    }

    public function testALossBeforeACommitIsSentLeavesNothingOpen(): void
    {
        foreach ([$this->connect(), $this->pool()] as $link) {
            $outcome = Outcome::of(fn(): mixed => $link->transaction(function (Transaction $transaction): string {
                $transaction->execute("INSERT INTO {$this->table} VALUES (1)");
                $this->proxy->close();
                Eventually::holds(
                    static fn(): bool
                        => Outcome::of(
                            static fn(): mixed => $transaction->query('SELECT 1'),
                        ) instanceof ConnectionLostException,
                    'the loss is noticed',
                );

                return 'done';
            }));

            self::assertInstanceOf(ConnectionLostException::class, $outcome);
            self::assertNotInstanceOf(CommitUnknownException::class, $outcome);
            self::assertSame([], $this->settled());
        }
        unset($link);
    }

    public function testALossWhileASavepointIsReleasedLeavesNothingOpen(): void
    {
        $link = $this->connect();
        $outcome = Outcome::of(
            fn(): mixed => $link->transaction(
                fn(Transaction $outer): mixed => $outer->transaction(function (Transaction $transaction): string {
                    $transaction->execute("INSERT INTO {$this->table} VALUES (1)");
                    $this->proxy->closeAfter($this->proxy->passed(Direction::ToClient), Direction::ToClient);

                    return 'done';
                }),
            ),
        );

        self::assertInstanceOf(ConnectionLostException::class, $outcome);
        self::assertNotInstanceOf(CommitUnknownException::class, $outcome);
        self::assertSame([], $this->settled());
    }

    public function testTheServersEndWhileItCommitsLeavesItOpenWhetherItWasDone(): void
    {
        foreach (['SELECT pg_terminate_backend(%d)', null] as $end) {
            foreach ([$this->connect(), $this->pool()] as $link) {
                $transaction = Async::run(
                    fn(): mixed => Outcome::of(
                        fn(): mixed => $link->transaction(
                            fn(Transaction $transaction): int
                                => $transaction->execute("INSERT INTO {$this->table} VALUES (1, 30)"),
                        ),
                    ),
                );
                $pid = $this->committing();
                $end === null ? $this->proxy->close() : Cluster::ask(\sprintf($end, $pid));
                $unknown = $transaction->await();

                self::assertInstanceOf(CommitUnknownException::class, $unknown, Outcome::describe($unknown));
                self::assertStringStartsWith(
                    'It is unknown whether the transaction was committed. The connection to PostgreSQL was lost: ',
                    $unknown->getMessage(),
                );
                self::assertInstanceOf(ConnectionLostException::class, $unknown->getPrevious());
                self::assertSame($end === null ? null : '57P01', $unknown->sqlState);
                Cluster::ask("SELECT pg_terminate_backend({$pid})");
                self::assertSame([], $this->settled());
            }
        }
        unset($link);
    }

    public function testAServerThatGoesSilentWhileItCommitsLeavesItOpenWhetherItWasDone(): void
    {
        $link = PostgresConnection::connect($this->options()->with(['readTimeout' => 0.2]));
        $outcome = Outcome::of(fn(): string => $link->transaction(function (Transaction $transaction): string {
            $transaction->execute("INSERT INTO {$this->table} VALUES (1)");
            $this->proxy->pause();

            return 'done';
        }));

        self::assertInstanceOf(CommitUnknownException::class, $outcome, Outcome::describe($outcome));
    }

    public function testACommitIsNotCancelled(): void
    {
        $cancellation = new DeferredCancellation();
        $link = $this->connect();
        $transaction = Async::run(fn(): mixed => Outcome::of(fn(): mixed => $link->transaction(
            fn(Transaction $transaction): int => $transaction->execute("INSERT INTO {$this->table} VALUES (1, 0.3)"),
            cancellation: $cancellation->getCancellation(),
        )));
        $this->committing();
        $cancellation->cancel();

        self::assertSame(1, $transaction->await());
        self::assertSame([['id' => '1']], Cluster::ask("SELECT id FROM {$this->table}"));
        $link->close();
    }

    public function testACancellationEndsACommitThatAStoppedServerProcessDoesNotAnswer(): void
    {
        $outcomes = Outcome::ofAll(array_map(
            fn(PostgresLink $link): \Closure => fn(): mixed => $link->transaction(
                function (Transaction $transaction): bool {
                    $transaction->execute("INSERT INTO {$this->table} SELECT pg_backend_pid()");

                    return $this->stop($transaction);
                },
                cancellation: new TimeoutCancellation(0.5),
            ),
            ['connection' => $this->connect(), 'pool' => $this->pool()],
        ));

        self::assertCount(2, $this->stopped);
        $this->continueStopped();
        foreach ($outcomes as $outcome) {
            self::assertInstanceOf(CommitUnknownException::class, $outcome, Outcome::describe($outcome));
            self::assertStringContainsString('did not answer its COMMIT within 5 s', $outcome->getMessage());
        }
        // The server had received each COMMIT, and executes it when it goes on.
        Eventually::holds(fn(): bool => \count($this->settled()) === 2, 'both are committed');
    }

    public function testACancellationEndsATransactionWhoseServerProcessIsStopped(): void
    {
        $query = static fn(Transaction $transaction, Cancellation $cancellation): mixed
            => $transaction->query('SELECT 1', [], $cancellation);
        $start = hrtime(true);
        $outcomes = Outcome::ofAll(array_map(
            fn(\Closure $work): \Closure => fn(): mixed => $this->connect()->transaction(
                function (Transaction $transaction) use ($work): mixed {
                    $this->stop($transaction);

                    return $work($transaction, new TimeoutCancellation(0.5));
                },
                cancellation: new TimeoutCancellation(0.5),
            ),
            [
                'a statement' => $query,
                'a stream' => static fn(Transaction $transaction, Cancellation $cancellation): array
                    => iterator_to_array($transaction->stream('SELECT 1', [], $cancellation)),
                'a nested transaction' => static fn(Transaction $transaction, Cancellation $cancellation): mixed
                    => $transaction->transaction(
                        static fn(Transaction $nested): mixed => $query($nested, $cancellation),
                        cancellation: $cancellation,
                    ),
            ],
        ));

        self::assertLessThan(15, (hrtime(true) - $start) / 1e9, 'seconds');
        $this->continueStopped();
        foreach ($outcomes as $name => $outcome) {
            self::assertInstanceOf(CancelledException::class, $outcome, "{$name}: " . Outcome::describe($outcome));
        }
    }

    public function testWhatTheServerRefusesToCommitIsKnownNotToBe(): void
    {
        $server = self::answering(
            static fn(FakeSession $session) => $session->fail('40001', 'could not serialize access'),
        );
        $link = Answers::connect($server);
        $outcome = Outcome::of(
            static fn(): mixed
                => $link->transaction(static fn(Transaction $transaction): int => $transaction->execute('INSERT')),
        );

        self::assertInstanceOf(SerializationFailureException::class, $outcome, Outcome::describe($outcome));
        $link->close();
        $server->stop();
    }

    public function testACommitThatTheServerMakesARollbackIsNoCommit(): void
    {
        $server = self::answering(static fn(FakeSession $session) => $session->complete('ROLLBACK'));
        $link = Answers::connect($server);
        $outcome = Outcome::of(
            static fn(): mixed
                => $link->transaction(static fn(Transaction $transaction): int => $transaction->execute('INSERT')),
        );

        self::assertInstanceOf(TransactionAbortedException::class, $outcome, Outcome::describe($outcome));
        $link->close();
        $server->stop();
    }

    public function testALossWhileTheEndOfAStreamIsCommittedIsReported(): void
    {
        $link = $this->connect();
        $rows = 0;
        $outcome = Outcome::of(function () use ($link, &$rows): void {
            foreach ($link->stream(
                "INSERT INTO {$this->table} SELECT i FROM generate_series(1, 10) AS i RETURNING id",
            ) as $_) {
                if (++$rows === 10) {
                    $this->proxy->closeAfter($this->proxy->passed(Direction::ToClient), Direction::ToClient);
                }
            }
        });

        self::assertSame(10, $rows);
        self::assertInstanceOf(CommitUnknownException::class, $outcome, Outcome::describe($outcome));
        self::assertCount(10, $this->settled());
    }

    /** @param \Closure(FakeSession): void $commit answers a COMMIT */
    private static function answering(\Closure $commit): FakeServer
    {
        return Answers::server(static function (FakeConnection $client) use ($commit): void {
            $session = new FakeSession($client);
            for (;;) {
                $tag = $session->next();
                $session->beginsOrEnds($tag);
                $tag === 'COMMIT' ? $commit($session) : $session->complete($tag === 'INSERT' ? 'INSERT 0 1' : $tag);
            }
        });
    }

    /** Stops the server process of a transaction until the end of the test, or {@see continueStopped()}. */
    private function stop(Transaction $transaction): bool
    {
        $pid = $transaction->query('SELECT pg_backend_pid()')->value();
        self::assertIsInt($pid);
        $this->stopped[] = $pid;

        return posix_kill($pid, \SIGSTOP);
    }

    private function continueStopped(): void
    {
        foreach ($this->stopped as $pid) {
            posix_kill($pid, \SIGCONT);
        }
        $this->stopped = [];
    }

    /** Returns the backend that commits for 30 s, once it exists. */
    private function committing(): int
    {
        $pid = null;
        Eventually::holds(static function () use (&$pid): bool {
            $pid = Cluster::ask(
                "SELECT pid FROM pg_stat_activity WHERE state = 'active' AND query = 'COMMIT' "
                    . "AND wait_event = 'PgSleep'",
            )[0]['pid']
                ?? null;

            return $pid !== null;
        }, 'a backend commits');

        return (int) $pid;
    }

    public function testAnAlterWhoseCommitIsUnknownReachesTheOtherSessions(): void
    {
        Cluster::ask("ALTER TABLE {$this->table} ADD at timestamp");
        $pool = new PostgresPool($this->options(), 2);
        $insert = static fn(PostgresLink $link, string $table, int $id): int => $link->execute(
            "INSERT INTO {$table} (id, at) VALUES (\$1, \$2)",
            [$id, new \DateTimeImmutable('2026-03-01 12:00:00+05:00')],
        );
        $other = $pool->acquire();
        $insert($other, $this->table, 1);
        $outcome = Outcome::of(fn() => $pool->transaction(function (Transaction $transaction): void {
            $transaction->execute("ALTER TABLE {$this->table} ALTER at TYPE timestamptz");
            $this->proxy->closeAfter(0, Direction::ToClient);
        }));
        $this->proxy->cutNone();
        $this->settled();
        $insert($other, $this->table, 2);
        $other->release();

        self::assertInstanceOf(CommitUnknownException::class, $outcome);
        self::assertSame(
            [['same' => 't']],
            Cluster::ask("SELECT at = '2026-03-01 07:00:00+00' AS same FROM {$this->table} WHERE id = 2"),
        );
        $pool->close();
    }

    /**
     * Returns the rows of the table, once no transaction that has written to it is open.
     *
     * @return list<array<array-key, string|null>>
     */
    private function settled(): array
    {
        Eventually::holds(
            fn(): bool => Cluster::ask(
                "SELECT FROM pg_locks WHERE relation = '{$this->table}'::regclass AND pid <> pg_backend_pid()",
            ) === [],
            'no transaction is under way',
        );

        return Cluster::ask("SELECT id FROM {$this->table}");
    }

    private function options(): PostgresOptions
    {
        $dsn = Cluster::shared()->tcpDsn(port: (string) $this->proxy->port, sslmode: 'disable');

        return PostgresOptions::fromDsn($dsn);
    }

    private function connect(): PostgresConnection
    {
        return PostgresConnection::connect($this->options());
    }

    private function pool(): PostgresLink
    {
        return new PostgresPool($this->options(), 2);
    }
}

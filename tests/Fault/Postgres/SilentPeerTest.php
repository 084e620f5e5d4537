<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Postgres;

use Amp\Cancellation;
use Amp\CancelledException;
use Amp\DeferredCancellation;
use Amp\TimeoutCancellation;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\Group;
use Revolt\EventLoop;
use Spindle\Postgres\ConnectionLostException;
use Spindle\Postgres\Notification;
use Spindle\Postgres\PoolTimeoutException;
use Spindle\Postgres\PostgresConnection;
use Spindle\Postgres\PostgresLink;
use Spindle\Postgres\PostgresOptions;
use Spindle\Postgres\PostgresPool;
use Spindle\Postgres\PostgresPoolOptions;
use Spindle\Postgres\QueryCancelledException;
use Spindle\Postgres\Reconnected;
use Spindle\Postgres\Transaction;
use Spindle\Tests\Async;
use Spindle\Tests\Conformance\Postgres\Journal;
use Spindle\Tests\Eventually;
use Spindle\Tests\Postgres\Cluster;
use Spindle\Tests\Postgres\Direction;
use Spindle\Tests\Postgres\FaultyProxy;
use Spindle\Tests\Postgres\UsesCluster;
use Spindle\Tests\Postgres\Watchdog;
use Spindle\Tests\TidyTestCase;

use function Amp\delay;
use function Amp\Future\await;

/** Tests a peer that vanishes without a message, sends nothing, or reads nothing. */
final class SilentPeerTest extends TidyTestCase
{
    use ComesToRest;
    use UsesCluster;

    /** Read timeout in seconds. */
    private const TIMEOUT = 0.4;
    private const SLACK = 3.0;

    /** Seconds within which an answer would arrive, if there was one. */
    private const BRIEFLY = 0.15;

    private FaultyProxy $proxy;

    protected function setUp(): void
    {
        $this->proxy = FaultyProxy::before(Cluster::shared());
    }

    protected function tearDown(): void
    {
        $this->proxy->stop();
        unset($this->proxy);
    }

    /**
     * @return iterable<string, array{\Closure(PostgresLink, \Closure(): void): mixed}> work, and the moment in it when
     *     the network fails
     */
    public static function work(): iterable
    {
        yield 'a query' => [static function (PostgresLink $link, \Closure $fail): mixed {
            $fail();

            return $link->query('SELECT 1')->value();
        }];
        yield 'a query that runs' => [static function (PostgresLink $link, \Closure $fail): mixed {
            $sql = 'SELECT 1 FROM pg_sleep(1) -- ' . bin2hex(random_bytes(4));
            $query = Async::run(static fn(): mixed => $link->query($sql)->value());
            $runs = "SELECT FROM pg_stat_activity WHERE state = 'active' AND query = '{$sql}'";
            Eventually::holds(static fn(): bool => Cluster::ask($runs) !== [], 'it runs');
            $fail();

            return $query->await();
        }];
        yield 'a result that is half here' => [static function (PostgresLink $link, \Closure $fail): mixed {
            $query = Async::run(
                static fn(): mixed
                    => $link->query("SELECT repeat('x', 100000), i FROM generate_series(1, 200) AS i")->allNumeric(),
            );
            delay(0.005);
            $fail();

            return \count($query->await());
        }];
        yield 'a transaction' => [
            static fn(PostgresLink $link, \Closure $fail): mixed
                => $link->transaction(static function (Transaction $transaction) use ($fail): mixed {
                    $transaction->query('SELECT 1');
                    $fail();

                    return $transaction->query('SELECT 2')->value();
                }),
        ];
        yield 'a stream' => [static function (PostgresLink $link, \Closure $fail): mixed {
            foreach ($link->stream("SELECT repeat('x', 1000) FROM generate_series(1, 100000)") as $number => $_) {
                if ($number === 500) {
                    $fail();
                }
            }

            return 'all';
        }];
        yield 'a copy out' => [static function (PostgresLink $link, \Closure $fail): mixed {
            $rows = "SELECT repeat('x', 1000) FROM generate_series(1, 30000)";
            foreach ($link->copyTo("COPY ({$rows}) TO STDOUT") as $number => $_) {
                if ($number === 500) {
                    $fail();
                }
            }

            return 'all';
        }];
        yield 'the end of a copy in' => [static function (PostgresLink $link, \Closure $fail): mixed {
            $table = 'silent_' . bin2hex(random_bytes(4));
            $link->executeScript("CREATE TABLE {$table} (a int)");

            return $link->copyFrom("COPY {$table} FROM STDIN", (static function () use ($fail): \Generator {
                yield "1\n";
                $fail();
            })());
        }];
        yield 'a script' => [static function (PostgresLink $link, \Closure $fail): mixed {
            $fail();
            $link->executeScript('SELECT 1; SELECT 2');

            return 'done';
        }];
    }

    /** @param \Closure(PostgresLink, \Closure(): void): mixed $work */
    #[DataProvider('work')]
    public function testASilentServerIsGivenUpAfterTheReadTimeout(\Closure $work): void
    {
        $makers = [
            static fn(PostgresOptions $options): PostgresLink => PostgresConnection::connect($options),
            static fn(PostgresOptions $options): PostgresLink => new PostgresPool($options, 1),
        ];
        $fails = [
            static fn(FaultyProxy $proxy) => $proxy->swallow(),
            static fn(FaultyProxy $proxy) => $proxy->pause(),
        ];
        $running = [];
        foreach ($makers as $make) {
            foreach ($fails as $fail) {
                $running[] = Async::run(static fn() => self::giveUp($make, $fail, $work));
            }
        }
        await($running);
    }

    /**
     * @param \Closure(PostgresOptions): PostgresLink           $make
     * @param \Closure(FaultyProxy): mixed                      $fail
     * @param \Closure(PostgresLink, \Closure(): void): mixed $work
     */
    private static function giveUp(\Closure $make, \Closure $fail, \Closure $work): void
    {
        $proxy = FaultyProxy::before(Cluster::shared());
        $link = $make(self::through($proxy)->with(['readTimeout' => self::TIMEOUT]));
        $link->query('SELECT 0');
        $at = 0;
        $failAndNote = static function () use (&$at, $fail, $proxy): void {
            $fail($proxy);
            $at = hrtime(true);
        };
        [$blocked, $turn] = [0, hrtime(true)];
        $watch = EventLoop::repeat(0.005, static function () use (&$blocked, &$turn): void {
            [$blocked, $turn] = [max($blocked, hrtime(true) - $turn), hrtime(true)];
        });
        $lost = Outcome::of(static fn(): mixed => $work($link, $failAndNote));
        $now = hrtime(true);
        EventLoop::cancel($watch);
        $took = ($now - $at) / 1e9;
        $silent = ($now - min($at, $proxy->lastPassed())) / 1e9;
        $proxy->resume();

        self::assertInstanceOf(ConnectionLostException::class, $lost, Outcome::describe($lost));
        $message = 'The connection to PostgreSQL was lost: the server sent nothing within 0.4 s';
        self::assertStringContainsString($message, $lost->getMessage());
        // While the loop was blocked, the proxy had not passed on what the client had sent.
        self::assertGreaterThan(self::TIMEOUT - 0.05 - $blocked / 1e9, $silent);
        self::assertLessThan(self::TIMEOUT + self::SLACK, $took);
        if ($link instanceof PostgresPool) {
            self::assertSame(3, $link->query('SELECT 3')->value());
        }
        unset($link);
        $proxy->stop();
    }

    public function testASilentServerIsGivenUpWhileStatementsAreSent(): void
    {
        $link = PostgresConnection::connect($this->options()->with(['readTimeout' => self::TIMEOUT]));
        $link->query('SELECT 1');
        $this->proxy->swallow();
        $first = Async::run(static fn(): mixed => Outcome::of(static fn(): mixed => $link->query('SELECT 1')));
        $sending = EventLoop::repeat(self::TIMEOUT / 10, static function () use ($link): void {
            Async::run(static fn(): mixed => $link->query('SELECT 1'))->ignore();
        });
        try {
            $outcome = $first->await(new TimeoutCancellation(self::TIMEOUT + self::SLACK));
        } finally {
            EventLoop::cancel($sending);
            $this->proxy->resume();
        }

        self::assertInstanceOf(ConnectionLostException::class, $outcome, Outcome::describe($outcome));
        self::assertStringContainsString('the server sent nothing within 0.4 s', $outcome->getMessage());
    }

    public function testAListenerOfASilentServerGetsAnotherConnection(): void
    {
        $journal = new Journal();
        $link = PostgresConnection::connect($this->options()->with([
            'readTimeout' => self::TIMEOUT,
            'connectTimeout' => self::TIMEOUT,
            'logger' => $journal,
        ]));
        $outcome = Async::run(static function () use ($link): mixed {
            foreach ($link->listen('silence') as $first) {
                return $first;
            }

            return null;
        });
        Eventually::holds(static fn(): bool => str_contains($journal->text(), 'Done: LISTEN'), 'it listens');
        $this->proxy->swallow();
        $silentSince = new \DateTimeImmutable();
        Eventually::holds(
            static fn(): bool => str_contains($journal->text(), 'the server sent nothing within 0.4 s'),
            'the silence is noticed',
        );
        $this->proxy->resume();
        $gap = $outcome->await();

        self::assertInstanceOf(Reconnected::class, $gap);
        self::assertLessThanOrEqual($silentSince, $gap->since);
    }

    public function testTheGapOfAListenerBeginsBeforeALossThatIsNoticedLate(): void
    {
        $link = PostgresConnection::connect($this->options());
        $outcome = Async::run(static fn(): mixed => $link->listen('lost')->current());
        Eventually::holds(
            static fn(): bool => Cluster::ask("SELECT 1 FROM pg_stat_activity WHERE query = 'LISTEN \"lost\"'") !== [],
            'it listens',
        );
        delay(self::BRIEFLY);
        $lostAt = new \DateTimeImmutable();
        $this->proxy->close();
        usleep((int) (self::BRIEFLY * 1e6)); // the loop stands still
        $gap = $outcome->await();

        self::assertInstanceOf(Reconnected::class, $gap);
        self::assertLessThanOrEqual($lostAt, $gap->since);
    }

    public function testTheGapOfAListenerBeginsBeforeANotificationThatTheEndOfItsConnectionFollowsAtOnce(): void
    {
        $pool = new PostgresPool($this->options());
        $loop = $pool->listen('lost');
        $first = Async::run(static fn(): mixed => $loop->current());
        $isListening = static fn(): bool => Cluster::ask(
            "SELECT 1 FROM pg_stat_activity WHERE state = 'idle' AND query = 'LISTEN \"lost\"'",
        ) !== [];
        Eventually::holds($isListening, 'it listens');
        $complete = new \DateTimeImmutable();
        Cluster::ask("NOTIFY lost, '1'");
        self::assertInstanceOf(Notification::class, $first->await());
        $bytes = $this->proxy->passed(Direction::ToClient);
        $this->proxy->closeAfter($bytes + \strlen("A....pidxlost\0002\0"), Direction::ToClient);
        Cluster::ask("NOTIFY lost, '2'");
        $loop->next();
        self::assertInstanceOf(Notification::class, $loop->current());
        $ago = (hrtime(true) - $this->proxy->lastPassed()) / 1e9;
        $closedAt = new \DateTimeImmutable(\sprintf('@%.6F', microtime(true) - $ago));
        $loop->next();
        $gap = $loop->current();

        self::assertInstanceOf(Reconnected::class, $gap);
        self::assertGreaterThanOrEqual($complete, $gap->since);
        self::assertLessThanOrEqual($closedAt, $gap->since);
        $pool->kill();
    }

    /** @param \Closure(PostgresLink, \Closure(): void): mixed $work */
    #[DataProvider('work')]
    public function testWithoutAReadTimeoutACancellationFreesTheCallerOfASilentServer(\Closure $work): void
    {
        $options = $this->options()->with(['connectTimeout' => self::TIMEOUT]);
        $link = PostgresConnection::connect($options);
        $link->query('SELECT 1');
        $working = Async::run(fn(): mixed => Outcome::of(fn(): mixed => $work($link, $this->proxy->swallow(...))));
        $outcome = Outcome::of(static fn(): mixed => $working->await(new TimeoutCancellation(self::BRIEFLY)));
        self::assertInstanceOf(CancelledException::class, $outcome, 'it waits, as it was told to');

        $link->kill();
        self::assertInstanceOf(\Throwable::class, $working->await());
    }

    public function testATransactionIsOverThoughTheServerIsSilentWhenItIsToBeRolledBack(): void
    {
        $run = static function (bool $isNested): void {
            $proxy = FaultyProxy::before(Cluster::shared());
            $pool = new PostgresPool(self::through($proxy), 1);
            $fail = static function (Transaction $transaction) use ($proxy): never {
                $transaction->query('SELECT 1');
                $proxy->swallow();
                throw new \DomainException('enough');
            };
            $work = $isNested ? static fn(Transaction $transaction): mixed => $transaction->transaction($fail) : $fail;
            $outcome = Outcome::of(static fn(): mixed => $pool->transaction($work));
            $proxy->resume();

            self::assertInstanceOf(\DomainException::class, $outcome, Outcome::describe($outcome));
            self::assertSame(2, $pool->query('SELECT 2')->value());
            $pool->close();
            $proxy->stop();
        };
        await([Async::run(static fn() => $run(false)), Async::run(static fn() => $run(true))]);
    }

    public function testACallerIsFreeAtOnceAndTheConnectionEndsWhenAServerThatIsSilentCanNotBeAskedToStop(): void
    {
        $link = PostgresConnection::connect($this->options()->with(['connectTimeout' => self::TIMEOUT]));
        $link->query('SELECT 1');
        $this->proxy->pause();
        $at = hrtime(true);
        $outcome = Outcome::of(static fn(): mixed => $link->query('SELECT 1', [], new TimeoutCancellation(0.1)));
        self::assertInstanceOf(CancelledException::class, $outcome, Outcome::describe($outcome));
        self::assertLessThan(0.1 + self::SLACK, (hrtime(true) - $at) / 1e9);

        $lost = Outcome::of(static fn(): mixed => $link->query('SELECT 2'));
        self::assertInstanceOf(ConnectionLostException::class, $lost, Outcome::describe($lost));
        self::assertStringContainsString(
            'the request to stop a cancelled statement failed, so the client closed the connection',
            $lost->getMessage(),
        );
        self::assertLessThan(0.1 + self::TIMEOUT + self::SLACK, (hrtime(true) - $at) / 1e9);
    }

    public function testTheStatementTimeoutIsTheServers(): void
    {
        $options = $this->options()->with(['statementTimeout' => 0.1, 'readTimeout' => 5.0]);
        foreach ([PostgresConnection::connect($options), new PostgresPool($options, 1)] as $link) {
            $at = hrtime(true);
            $outcome = Outcome::of(static fn(): mixed => $link->query('SELECT pg_sleep(5)'));
            self::assertInstanceOf(QueryCancelledException::class, $outcome, Outcome::describe($outcome));
            self::assertLessThan(0.1 + self::SLACK, (hrtime(true) - $at) / 1e9);
            self::assertSame(1, $link->query('SELECT 1')->value());
        }
        unset($link);
    }

    public function testTheReadTimeoutDoesNotCountWhileNoByteIsDue(): void
    {
        $options = $this->options()->with(['readTimeout' => self::TIMEOUT]);
        $slowly = static function (int $rows): \Generator {
            for ($i = 0; $i < $rows; ++$i) {
                yield str_repeat('x', 1000) . "\n";
                if ($i % 100 === 0) {
                    delay(2 * self::TIMEOUT);
                }
            }
        };

        $many = "SELECT repeat('x', 1000) FROM generate_series(1, 20000)";
        $alive = "DO $$ BEGIN FOR i IN 1..10 LOOP RAISE NOTICE 'alive'; PERFORM pg_sleep(0.06); END LOOP; END $$";
        $waits = [
            'idle' => static function (): void {
                delay(2 * self::TIMEOUT);
            },
            'a source that is slow' => static function (PostgresConnection $link) use ($slowly): void {
                $link->executeScript('CREATE TEMPORARY TABLE patient (a text)');
                self::assertSame(101, $link->copyFrom('COPY patient FROM STDIN', $slowly(101)));
            },
            'who reads a copy slowly' => static function (PostgresConnection $link) use ($many): void {
                $rows = 0;
                foreach ($link->copyTo("COPY ({$many}) TO STDOUT") as $_) {
                    if (++$rows === 10) {
                        delay(2 * self::TIMEOUT);
                    }
                }
                self::assertSame(20_000, $rows);
            },
            'who reads a stream slowly' => static function (PostgresConnection $link) use ($many): void {
                $rows = 0;
                foreach ($link->stream($many) as $_) {
                    if (++$rows === 10) {
                        delay(2 * self::TIMEOUT);
                    }
                }
                self::assertSame(20_000, $rows);
            },
            'between the statements of a transaction' => static function (PostgresConnection $link): void {
                $link->transaction(static function (Transaction $transaction): void {
                    $transaction->query('SELECT 1');
                    delay(2 * self::TIMEOUT);
                    self::assertSame(2, $transaction->query('SELECT 2')->value());
                });
            },
            'a server that speaks now and then' => static function (PostgresConnection $link) use ($alive): void {
                self::assertCount(0, $link->query($alive));
            },
        ];
        $links = array_map(static fn(): PostgresConnection => PostgresConnection::connect($options), $waits);
        $running = [];
        foreach ($waits as $name => $wait) {
            $running[] = Async::run(static fn() => $wait($links[$name]));
        }
        await($running);
        delay(2 * self::TIMEOUT); // anything that waits now would have timed out
        foreach ($links as $name => $link) {
            self::assertSame(3, $link->query('SELECT 3')->value(), $name);
        }

        $link = $links['idle'];
        $query = Async::run(static fn(): mixed => $link->query('SELECT 4')->value());
        delay(0);
        usleep((int) (2 * self::TIMEOUT * 1e6)); // the loop stands still
        self::assertSame(4, $query->await());
    }

    #[Group('quiet')]
    public function testASlowNetworkIsNotSilentWhileItTakesALargeParameter(): void
    {
        // The kernel's buffers hold up to 10 MB, which arrive within half a second.
        $timeout = 1.0;
        $link = PostgresConnection::connect($this->options()->with(['readTimeout' => $timeout]));
        $link->query('SELECT length($1::text)', ['x']);
        $this->proxy->delay(0.002); // for 64 KiB
        $at = hrtime(true);
        $large = str_repeat('x', 40 << 20);
        self::assertSame(40 << 20, $link->query('SELECT length($1::text)', [$large])->value());
        self::assertGreaterThan($timeout, (hrtime(true) - $at) / 1e9, 'it took its time');
    }

    /** @return iterable<string, array{\Closure(PostgresLink, ?Cancellation=): mixed}> */
    public static function uploads(): iterable
    {
        yield 'a parameter' => [
            static fn(PostgresLink $link, ?Cancellation $cancellation = null): mixed
                => $link->query('SELECT length($1::bytea)', [str_repeat("\xFF\0", 16 << 20)], $cancellation)->value(),
        ];
        yield 'a copy' => [
            static fn(PostgresLink $link, ?Cancellation $cancellation = null): mixed
                => $link->transaction(static function (Transaction $transaction) use ($cancellation): int {
                    $transaction->executeScript('CREATE TEMPORARY TABLE uploaded (a text) ON COMMIT DROP');

                    return $transaction->copyFrom('COPY uploaded FROM STDIN', (static function (): \Generator {
                        for ($i = 0; $i < 32 * 1024; ++$i) {
                            yield str_repeat('x', 1023) . "\n";
                        }
                    })(), $cancellation);
                }),
        ];
    }

    /** @param \Closure(PostgresLink, ?Cancellation=): mixed $upload */
    #[DataProvider('uploads')]
    #[Group('quiet')]
    public function testAServerThatStopsReadingIsGivenUpAfterTheReadTimeoutWhileTheLoopTurns(\Closure $upload): void
    {
        $options = $this->options()->with(['readTimeout' => self::BRIEFLY]);
        $link = PostgresConnection::connect($options);
        $link->query('SELECT 1');
        $outcome = null;
        $gap = Watchdog::during(function () use ($link, $upload, &$outcome): void {
            $uploading = Async::run(static fn(): mixed => Outcome::of(static fn(): mixed => $upload($link)));
            $before = $this->proxy->passed(Direction::ToServer);
            Eventually::holds(
                fn(): bool => $this->proxy->passed(Direction::ToServer) > $before + 1_000_000,
                'it is under way',
            );
            $this->proxy->pause();
            $outcome = $uploading->await();
        });

        self::assertInstanceOf(ConnectionLostException::class, $outcome, Outcome::describe($outcome));
        self::assertStringContainsString('within 0.15 s', $outcome->getMessage());
        self::assertLessThan(1.0, $gap, 'seconds that the loop stood still; the proxy is in it too');
        $this->proxy->resume();
    }

    /** @param \Closure(PostgresLink, ?Cancellation=): mixed $upload */
    #[DataProvider('uploads')]
    public function testAnUploadToAServerThatReadsNoMoreIsFreeAtOnceWhenItsConnectionIsClosed(\Closure $upload): void
    {
        $link = PostgresConnection::connect($this->options());
        $link->query('SELECT 1');
        $uploading = Async::run(static fn(): mixed => Outcome::of(static fn(): mixed => $upload($link)));
        $before = $this->proxy->passed(Direction::ToServer);
        Eventually::holds(
            fn(): bool => $this->proxy->passed(Direction::ToServer) > $before + 1_000_000,
            'it is under way',
        );
        $this->proxy->pause();
        delay(0.05);
        $at = hrtime(true);
        $link->kill();

        self::assertStringContainsString('is closed', Outcome::describe($uploading->await()));
        self::assertLessThan(3.0, (hrtime(true) - $at) / 1e9);
    }

    /** @param \Closure(PostgresLink, ?Cancellation=): mixed $upload */
    #[DataProvider('uploads')]
    public function testACancelledUploadEndsWhileTheServerReadsNothingAndTheConnectionWorksLater(\Closure $upload): void
    {
        $link = PostgresConnection::connect($this->options());
        $link->query('SELECT 1');
        $cancellation = new DeferredCancellation();
        $uploading = Async::run(
            static fn(): mixed => Outcome::of(static fn(): mixed => $upload($link, $cancellation->getCancellation())),
        );
        $before = $this->proxy->passed(Direction::ToServer);
        Eventually::holds(
            fn(): bool => $this->proxy->passed(Direction::ToServer) > $before + 1_000_000,
            'it is under way',
        );
        $this->proxy->pause();
        $cancellation->cancel();
        // In a transaction, the rollback must be waited for.
        EventLoop::delay(0.05, $this->proxy->resume(...)); // The server must have nothing to read for a while.
        $outcome = $uploading->await();

        self::assertInstanceOf(CancelledException::class, $outcome, Outcome::describe($outcome));
        self::assertSame(1, $link->query('SELECT 1')->value());
    }

    public function testAPoolIsNotHeldUpByConnectionsThatHaveGoneSilent(): void
    {
        $pool = new PostgresPool($this->options(), 2, new PostgresPoolOptions(acquireTimeout: 0.5, validateAfter: 0));
        Outcome::ofAll(
            [
                static fn(): mixed => $pool->query('SELECT pg_sleep(0.05)'),
                static fn(): mixed => $pool->query('SELECT pg_sleep(0.06)'),
            ],
        );
        self::assertSame(2, $pool->statistics()['idle']);
        $this->proxy->swallow();
        $at = hrtime(true);
        $outcome = Outcome::of(static fn(): mixed => $pool->query('SELECT 1')->value());
        $took = (hrtime(true) - $at) / 1e9;

        self::assertInstanceOf(PoolTimeoutException::class, $outcome, Outcome::describe($outcome));
        self::assertStringContainsString('1 open connection has not answered', $outcome->getMessage());
        self::assertSame([1, 0], [$pool->statistics()['timed_out_total'], $pool->statistics()['waiting']]);
        self::assertLessThan(
            0.5 + self::SLACK,
            $took,
            'the time that somebody waits for a connection is limited, whatever it is spent on',
        );
        // Open connections stay silent, new ones do not.
        $this->proxy->close();
        $this->proxy->resume();
        self::assertSame(1, $pool->query('SELECT 1')->value());
        $pool->close();
    }

    public function testAConnectionThatIsLetGoWhileItsServerIsSilentLeavesNothing(): void
    {
        foreach ([PostgresConnection::connect($this->options()), new PostgresPool($this->options(), 2)] as $link) {
            $link->query('SELECT 1');
            $stream = $link->stream('SELECT i FROM generate_series(1, 100000) AS i');
            $stream->current();
            $this->proxy->swallow();
            $link->kill();
            unset($stream);
            $this->proxy->resume();
        }
        unset($link);
        $this->proxy->close();
        Eventually::holds(fn(): bool => $this->proxy->open() === 0, 'all is closed');
    }

    private function options(): PostgresOptions
    {
        return self::through($this->proxy);
    }

    private static function through(FaultyProxy $proxy): PostgresOptions
    {
        return PostgresOptions::fromDsn(Cluster::shared()->tcpDsn(port: (string) $proxy->port, sslmode: 'disable'));
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Postgres;

use Amp\Future;
use Spindle\Postgres\CommitUnknownException;
use Spindle\Postgres\ConnectionLostException;
use Spindle\Postgres\PostgresPool;
use Spindle\Postgres\PostgresPoolOptions;
use Spindle\Postgres\Transaction;
use Spindle\Tests\Async;
use Spindle\Tests\Eventually;
use Spindle\Tests\Host;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Postgres\Cluster;
use Spindle\Tests\Scale;
use Spindle\Tests\TidyTestCase;

use function Amp\Future\await;

/** Tests a server that restarts repeatedly while many clients use it. */
final class RestartTest extends TidyTestCase
{
    use OwnDirectory;

    private const FACTS = 300;

    private const DONE = 'done';
    private const UNKNOWN = 'unknown';
    private const NOT_DONE = 'not done';

    private ?PostgresPool $pool = null;

    /** @var array<string, string> outcome that each token's fiber got, by token */
    private array $outcomes = [];

    /** @var array<string, int> how often each kind of work succeeded, by whether the last restart was over */
    private array $successes = [];

    private int $losses = 0;

    private int $fibers = 0;

    private bool $over = false;

    protected function deadline(): int
    {
        return 160;
    }

    public function testNoRowIsMixedAndNothingIsDoneTwiceHoweverOftenTheServerGoesDown(): void
    {
        mt_srand(Scale::seed());
        // At least once for each way to stop.
        [$restarts, $this->fibers] = Scale::isFull() ? [20, 200] : [4, 60];
        $program = Host::start(RestartProgram::class . '::run', [$this->path(), $restarts, Scale::seed()]);
        Eventually::holds(fn(): bool => is_file($this->path('dsn')), 'the server runs', 20);
        $dsn = (string) file_get_contents($this->path('dsn'));
        Cluster::ask(<<<'SQL'
            CREATE TABLE tokens (token text NOT NULL);
            CREATE TABLE facts AS
            SELECT id, payload, md5(id || payload) AS checksum
            FROM (SELECT id, repeat(md5(id::text), 1 + id * id % 700) AS payload
                FROM generate_series(1, 300) AS id) AS fact;
            ALTER TABLE facts ADD PRIMARY KEY (id);
            SQL, $dsn);
        $this->pool = new PostgresPool($dsn, 10, new PostgresPoolOptions(acquireTimeout: 30));

        $fibers = array_map($this->fiber(...), range(1, $this->fibers));
        for ($restart = 1; $restart <= $restarts; ++$restart) {
            $before = array_sum($this->successes);
            Eventually::holds(
                fn(): bool => array_sum($this->successes) >= $before + 2 * $this->fibers,
                "the pool works after {$before} successes",
                30,
            );
            touch($this->path("go{$restart}"));
            Eventually::holds(
                fn(): bool => (int) @file_get_contents($this->path('restarts')) === $restart,
                'the server is restarted',
                30,
            );
        }
        $this->over = true;
        await($fibers);

        $this->assertTokens($dsn);
        foreach (['fact', 'facts', 'insert', 'transaction', 'stream'] as $work) {
            self::assertGreaterThanOrEqual(
                $this->fibers,
                $this->successes["{$work} after"],
                'each fiber got through after the last restart',
            );
        }
        self::assertGreaterThan($restarts, $this->losses, 'connections were lost in the middle of work');
        self::assertLessThanOrEqual(10, $this->pool()->statistics()['in_use'] + $this->pool()->statistics()['idle']);
        $this->pool()->close();
        $this->pool = null;
        touch($this->path('stop'));
        Eventually::holds(static fn(): bool => !$program->isRunning(), 'the server is stopped', 20);
        self::assertSame(0, $program->getExitCode(), $program->getErrorOutput());
    }

    private function pool(): PostgresPool
    {
        return $this->pool ?? self::fail('there is no pool');
    }

    /** @return Future<null> */
    private function fiber(int $number): Future
    {
        return Async::run(function () use ($number): null {
            $works = [
                'fact' => $this->fact(...),
                'facts' => $this->facts(...),
                'insert' => $this->insert(...),
                'transaction' => $this->transaction(...),
                'stream' => $this->stream(...),
            ];
            for ($round = 0; !$this->over; ++$round) {
                $name = array_rand($works);
                $this->attempt($name, static fn() => $works[$name]("{$number}.{$round}"));
            }
            foreach ($works as $name => $work) {
                for ($try = 0; !$this->attempt(
                    "{$name} after",
                    static fn() => $work("{$number}.{$name}.{$try}"),
                ); ++$try) {
                    // A connection whose end is still unnoticed fails at most once.
                    self::assertLessThan(15, $try, "{$name} fails again and again");
                }
            }

            return null;
        });
    }

    /** @param \Closure(): mixed $work */
    private function attempt(string $name, \Closure $work): bool
    {
        try {
            $work();
        } catch (ConnectionLostException) {
            ++$this->losses;

            return false;
        }
        $this->successes[$name] = ($this->successes[$name] ?? 0) + 1;

        return true;
    }

    private function fact(): void
    {
        $id = mt_rand(1, self::FACTS);
        $row = $this->pool()->query('SELECT id, payload, checksum FROM facts WHERE id = $1', [$id])->one();
        self::assertNotNull($row);
        self::assertFact($id, $row);
    }

    private function facts(): void
    {
        $first = mt_rand(1, self::FACTS - 20);
        $rows = $this->pool()
            ->query(
                'SELECT id, payload, checksum FROM facts WHERE id BETWEEN $1 AND $2 ORDER BY id',
                [$first, $first + 19],
            )
            ->all();
        self::assertCount(20, $rows);
        foreach ($rows as $index => $row) {
            self::assertFact($first + $index, $row);
        }
    }

    private function stream(): void
    {
        $id = 0;
        try {
            foreach ($this->pool()->stream('SELECT id, payload, checksum FROM facts ORDER BY id') as $row) {
                self::assertFact(++$id, $row);
            }
        } catch (CommitUnknownException) {
            // All rows have arrived. The outcome of the commit does not matter, because nothing was written.
        }
        self::assertSame(self::FACTS, $id);
    }

    private function insert(string $token): void
    {
        $this->token($token, fn(): mixed => $this->pool()->execute('INSERT INTO tokens VALUES ($1)', [$token]));
    }

    private function transaction(string $token): void
    {
        $this->token(
            $token,
            fn() => $this->pool()->transaction(static function (Transaction $transaction) use ($token): void {
                $transaction->execute('INSERT INTO tokens VALUES ($1)', ["{$token} a"]);
                $transaction->transaction(
                    static fn(Transaction $inner): int
                        => $inner->execute('INSERT INTO tokens VALUES ($1)', ["{$token} b"]),
                );
            }),
            true,
        );
    }

    /** @param \Closure(): mixed $work */
    private function token(string $token, \Closure $work, bool $isTransaction = false): void
    {
        $outcome = self::UNKNOWN;
        try {
            $work();
            $outcome = self::DONE;
        } catch (ConnectionLostException $lost) {
            $isKnown = $isTransaction && !$lost instanceof CommitUnknownException
                || str_starts_with($lost->getMessage(), 'Nothing was sent');
            $outcome = $isKnown ? self::NOT_DONE : self::UNKNOWN;

            throw $lost;
        } finally {
            foreach ($isTransaction ? ["{$token} a", "{$token} b"] : [$token] as $one) {
                $this->outcomes[$one] = $outcome;
            }
        }
    }

    /** @param array<string, mixed> $row */
    private static function assertFact(int $id, array $row): void
    {
        // One comparison instead of several, because there are many rows.
        if ($row['id'] !== $id || !\is_string($row['payload']) || $row['checksum'] !== md5($id . $row['payload'])) {
            self::fail(
                "The row {$id} is not itself: "
                    . substr(json_encode($row, \JSON_THROW_ON_ERROR | \JSON_INVALID_UTF8_SUBSTITUTE), 0, 300),
            );
        }
    }

    private function assertTokens(string $dsn): void
    {
        Eventually::holds(
            static fn(): bool => Cluster::ask(
                "SELECT FROM pg_locks WHERE relation = 'tokens'::regclass AND pid <> pg_backend_pid()",
                $dsn,
            ) === [],
            'no transaction is under way',
        );
        $counts = array_map(
            intval(...),
            array_column(Cluster::ask('SELECT token, count(*) AS n FROM tokens GROUP BY token', $dsn), 'n', 'token'),
        );
        self::assertSame([], array_filter($counts, static fn(int $count): bool => $count !== 1), 'inserted twice');
        self::assertSame([], array_diff_key($counts, $this->outcomes), 'what nobody has inserted');
        $of = fn(string $outcome): array => array_filter(
            $this->outcomes,
            static fn(string $one): bool => $one === $outcome,
        );
        self::assertSame([], array_diff_key($of(self::DONE), $counts), 'told to be done, and missing');
        self::assertSame([], array_intersect_key($of(self::NOT_DONE), $counts), 'told not to be done, and there');
        foreach ($of(self::UNKNOWN) as $token => $_) {
            if (str_ends_with($token, ' a')) {
                self::assertSame(
                    isset($counts[$token]),
                    isset($counts[substr($token, 0, -1) . 'b']),
                    "half of the transaction of {$token}",
                );
            }
        }
    }
}

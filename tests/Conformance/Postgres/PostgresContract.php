<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres;

use PHPUnit\Framework\Attributes\After;
use PHPUnit\Framework\Attributes\AfterClass;
use PHPUnit\Framework\Attributes\Before;
use PHPUnit\Framework\Attributes\BeforeClass;
use Revolt\EventLoop;
use Revolt\EventLoop\DriverFactory;
use Spindle\Postgres\PostgresConnection;
use Spindle\Postgres\PostgresLink;
use Spindle\Postgres\PostgresOptions;
use Spindle\Postgres\Transaction;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\Eventually;
use Spindle\Tests\Postgres\Cluster;
use Spindle\Tests\Postgres\FaultyProxy;
use Spindle\Tests\Postgres\UsesCluster;
use Spindle\Tests\TidyTestCase;

use function Amp\delay;

/** Common code of the client's tests. After each test, the server has none of its connections left. */
abstract class PostgresContract extends TidyTestCase
{
    use CatchesThrown;
    use UsesCluster;

    /** Identifies this test's connections on the server. */
    private string $application = '';

    #[BeforeClass(-1)]
    public static function startObserver(): void
    {
        Observer::start();
    }

    #[AfterClass]
    public static function stopObserver(): void
    {
        Observer::stop();
    }

    #[Before]
    protected function chooseName(): void
    {
        $this->application = 'test ' . bin2hex(random_bytes(6));
    }

    #[After(-4)]
    protected function findNoConnectionLeft(): void
    {
        if ($this->status()->isSuccess()) {
            delay(0); // fibers due in the loop's next turn are resumed
            gc_collect_cycles();
            Eventually::holds(fn(): bool => $this->backends() === [], 'all connections are closed');
            // A cancel request may outlive its statement for a moment.
            Eventually::holds(
                fn(): bool => array_diff(EventLoop::getIdentifiers(), $this->before['watchers']) === [],
                'nothing is under way',
            );
        }
    }

    /** Replaces the event loop after an exception left it, such as that of a test that did not end in time. */
    #[After(-5)]
    protected function renewTheLoop(): void
    {
        if ($this->status()->isFailure() || $this->status()->isError()) {
            EventLoop::setDriver((new DriverFactory())->create());
            gc_collect_cycles();
        }
    }

    /** @param mixed ...$changes options by name */
    protected function options(mixed ...$changes): PostgresOptions
    {
        /** @var array<string, mixed> $changes */
        return PostgresOptions::fromDsn(Cluster::shared()->dsn())->with(
            [
                'applicationName' => $this->application,
                'settings' => ['TimeZone' => 'UTC'],
                ...$changes,
            ],
        );
    }

    /** @param mixed ...$changes options by name */
    protected function connect(mixed ...$changes): PostgresConnection
    {
        return PostgresConnection::connect($this->options(...$changes));
    }

    /** Returns options for connecting through a network that may misbehave. */
    protected function throughProxy(FaultyProxy $proxy): PostgresOptions
    {
        $options = PostgresOptions::fromDsn(
            Cluster::shared()->tcpDsn(host: $proxy->host, port: (string) $proxy->port, sslmode: 'disable'),
        );

        return $options->with(
            [
                'applicationName' => $this->options()->applicationName,
                'settings' => ['TimeZone' => 'UTC'],
            ],
        );
    }

    /** Creates a table that all connections see. */
    protected static function table(string $definition): string
    {
        $name = 't_' . bin2hex(random_bytes(6));
        Observer::ask("CREATE TABLE {$name} ({$definition})");

        return $name;
    }

    /** Returns the content of a table, as other connections see it. */
    protected static function committed(string $table, string $columns = '*'): string
    {
        return (string) Observer::ask(
            "SELECT string_agg(r::text, ' ' ORDER BY r::text) AS all FROM (SELECT {$columns} FROM {$table}) r",
        )[0]['all'];
    }

    /**
     * Returns the server processes of this test.
     *
     * @return array<int, string> state by pid
     */
    protected function backends(): array
    {
        $rows = Observer::ask(
            "SELECT pid, state FROM pg_stat_activity WHERE application_name = '{$this->application}'",
        );

        return array_combine(
            array_map(intval(...), array_column($rows, 'pid')),
            array_map(strval(...), array_column($rows, 'state')),
        );
    }

    protected static function stateOf(int $pid): ?string
    {
        return Observer::ask("SELECT state FROM pg_stat_activity WHERE pid = {$pid}")[0]['state'] ?? null;
    }

    protected static function terminate(int $pid): void
    {
        Observer::ask("SELECT pg_terminate_backend({$pid})");
        Eventually::holdsByItself(static fn(): bool => self::stateOf($pid) === null, "process {$pid} has ended");
    }

    /** Gives work the time to finish that does not have to wait: runs the event loop, and queries the server. */
    protected static function meanwhile(): void
    {
        for ($i = 0; $i < 5; ++$i) {
            delay(0);
            Cluster::ask('SELECT 1');
        }
        delay(0);
    }

    /** @param \Closure(): mixed $work called where PHP can not switch fibers */
    protected function inASignalHandler(\Closure $work): void
    {
        $isCalled = false;
        pcntl_signal(\SIGUSR2, static function () use ($work, &$isCalled): void {
            $work();
            $isCalled = true;
        });
        posix_kill((int) getmypid(), \SIGUSR2);
        pcntl_signal_dispatch();
        pcntl_signal(\SIGUSR2, \SIG_DFL);
        self::assertTrue($isCalled);
    }

    protected static function integer(mixed $value): int
    {
        self::assertIsInt($value);

        return $value;
    }

    /**
     * @param array<mixed> $values
     *
     * @return list<int>
     */
    protected static function integers(array $values): array
    {
        return array_map(self::integer(...), array_values($values));
    }

    /** Returns the bytes of memory that the work needs at most, beyond those in use before. */
    protected static function growth(\Closure $work): int
    {
        gc_collect_cycles();
        memory_reset_peak_usage();
        $before = memory_get_usage();
        $work();

        return memory_get_peak_usage() - $before;
    }

    protected static function assertUsable(PostgresLink $link): void
    {
        self::assertSame([[42, 'ok']], $link->query('SELECT $1::int, $2::text', [42, 'ok'])->allNumeric());
    }

    /**
     * Returns the exception that the work with a link throws. The link stays usable: work in a transaction runs in a
     * nested one.
     *
     * @template T of \Throwable
     *
     * @param class-string<T> $class
     * @param \Closure(PostgresLink): mixed $work
     *
     * @return T
     */
    protected static function refused(string $class, PostgresLink $link, \Closure $work): \Throwable
    {
        $thrown = self::thrown(
            $class,
            static fn(): mixed => $link instanceof Transaction ? $link->transaction($work) : $work($link),
        );
        self::assertUsable($link);

        return $thrown;
    }
}

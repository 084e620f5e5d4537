<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres\Contract;

use Psr\Log\LogLevel;
use Spindle\Postgres\PooledConnection;
use Spindle\Postgres\PostgresPool;
use Spindle\Postgres\PostgresPoolOptions;
use Spindle\Tests\Conformance\Postgres\Journal;
use Spindle\Tests\Conformance\Postgres\PoolContract;
use Spindle\Tests\Eventually;

/**
 * Tests connections that are not given back.
 *
 * @phpstan-require-extends PoolContract
 */
trait ReportsLeaks
{
    public function testAConnectionThatIsLetGoComesBackAndIsReported(): void
    {
        $pool = $this->pool(1);
        $connection = self::borrow($pool, 'secret');
        $pid = $connection->backendPid();
        $connection->execute("SET work_mem = '123kB'");
        unset($connection);

        self::assertSame(
            [$pid, '4MB'],
            [$pool->query('SELECT pg_backend_pid()')->value(), $pool->query('SHOW work_mem')->value()],
        );
        self::assertCount(1, $this->warnings());
        self::assertStringContainsString('dropped without release()', $this->warnings()[0]);
        self::assertStringContainsString(__FILE__, $this->warnings()[0]);
        self::assertStringContainsString('borrow()', $this->warnings()[0]);
        self::assertStringNotContainsString('secret', $this->warnings()[0]);
    }

    public function testAConnectionThatIsKeptTooLongIsReportedAndLeftAlone(): void
    {
        $pool = $this->pool(1, leakDetectionThreshold: 0.02);
        $connection = self::borrow($pool, 'secret');
        Eventually::holds(fn(): bool => $this->warnings() !== [], 'it is reported');
        self::assertStringContainsString('not released within 0.02 s', $this->warnings()[0]);
        self::assertStringContainsString('borrow()', $this->warnings()[0]);
        self::assertStringContainsString(__FILE__, $this->warnings()[0]);
        self::assertStringNotContainsString('secret', $this->warnings()[0]);
        $connection->query('SELECT pg_sleep(0.05)');
        self::assertUsable($connection);
        $connection->release();

        self::assertCount(1, $this->warnings(), 'once');
        self::assertUsable($pool);
    }

    public function testAReleasedConnectionIsNotReported(): void
    {
        $pool = $this->pool(1, leakDetectionThreshold: 0.01);
        $connection = $pool->acquire();
        $connection->release();
        $pool->query('SELECT pg_sleep(0.03)');
        unset($connection);
        gc_collect_cycles();

        self::assertSame([], $this->warnings());
    }

    public function testTheLoggerGetsWarningsIfThereIsNoCallback(): void
    {
        $journal = new Journal();
        $pool = new PostgresPool($this->options(logger: $journal), 1);
        $connection = $pool->acquire();
        unset($connection);
        $warnings = array_values(array_filter(
            $journal->records,
            static fn(array $record): bool => $record['level'] === LogLevel::WARNING,
        ));

        self::assertCount(1, $warnings);
        self::assertStringContainsString('dropped without release()', $warnings[0]['message']);
        self::assertUsable($pool);
    }

    public function testTheErrorLogGetsWarningsIfThereIsNoLogger(): void
    {
        $log = tempnam(sys_get_temp_dir(), 'spindle-test-');
        \assert($log !== false);
        $before = ini_set('error_log', $log);
        try {
            $pool = new PostgresPool($this->options(), 1, new PostgresPoolOptions(leakDetectionThreshold: null));
            $connection = $pool->acquire();
            unset($connection);
            self::assertStringContainsString('dropped without release()', (string) file_get_contents($log));
            self::assertUsable($pool);
        } finally {
            ini_set('error_log', (string) $before);
            unlink($log);
        }
    }

    private static function borrow(PostgresPool $pool, string $secret): PooledConnection
    {
        return $secret === '' ? throw new \LogicException() : $pool->acquire();
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Bench\Postgres;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use Amp\Future;
use Spindle\Bench\Support\Program;
use Spindle\Postgres\ConnectionClosedException;
use Spindle\Postgres\ConnectionLostException;
use Spindle\Postgres\PooledConnection;
use Spindle\Postgres\PostgresConnection;
use Spindle\Postgres\PostgresOptions;
use Spindle\Postgres\PostgresPool;

use function Amp\async;
use function Amp\Future\await;
use function Amp\Future\awaitAll;

/** Time for which a server works on a statement after its client gave up. */
final readonly class Endings
{
    public const SLEEP = 'SELECT pg_sleep(60)';

    private const CONNECTIONS = 8;

    /** Time limit for each event, in seconds. */
    private const TIMEOUT = 30.0;

    private Activity $activity;

    /** Application name of the measured connections in pg_stat_activity. */
    private string $application;

    private Samples $samples;

    public function __construct(private Job $job, private Target $target)
    {
        $this->activity = new Activity($target);
        $this->application = 'spindle-bench-' . bin2hex(random_bytes(4));
        $this->samples = new Samples();
    }

    /** @return array<string, mixed> milliseconds: the median and the slowest */
    public function figures(): array
    {
        $right = 0;
        for ($i = 0; $i < $this->job->count; ++$i) {
            $right += (int) match ($this->job->variant) {
                Variant::CancelledQuery => $this->cancelledQuery(),
                Variant::ClosedPool => $this->closedPool(),
                Variant::KilledPool => $this->killedPool(),
                Variant::KilledClient => $this->killedClient(),
                default => throw new \LogicException("Cancellation is not measured for {$this->job->variant->value}"),
            };
        }

        return [
            'figure' => $this->samples->median(),
            'slowest' => $this->samples->slowest(),
            'results' => $right,
            'right' => $right === $this->job->count,
        ];
    }

    private function cancelledQuery(): bool
    {
        $connection = PostgresConnection::connect($this->options());
        $backend = $connection->backendPid();
        $cancellation = new DeferredCancellation();
        $query = async(static function () use ($connection, $cancellation): bool {
            try {
                $connection->query(self::SLEEP, [], $cancellation->getCancellation());
            } catch (CancelledException) {
                return true;
            }

            return false;
        });
        $this->activity->until(
            fn(Activity $activity): bool => $activity->sleepingProcesses($this->application) === 1,
            self::TIMEOUT,
        );
        $this->samples->take(function () use ($cancellation, $backend): void {
            $cancellation->cancel();
            $this->activity->until(
                static fn(Activity $activity): bool => $activity->state($backend) === 'idle',
                self::TIMEOUT,
            );
        });
        $right = $query->await() === true && $connection->query('SELECT 1')->value() === 1;
        $connection->close();
        $this->awaitEnd();

        return $right;
    }

    private function closedPool(): bool
    {
        $pool = new PostgresPool($this->options(), self::CONNECTIONS);
        foreach (await(array_map(
            static fn(): Future => async($pool->acquire(...)),
            range(1, self::CONNECTIONS),
        )) as $borrowed) {
            \assert($borrowed instanceof PooledConnection);
            $borrowed->release();
        }
        // A released connection is reset before it becomes idle.
        while ($pool->statistics()['idle'] < self::CONNECTIONS) {
            $this->activity->backends($this->application);
        }
        $right = $this->activity->backends($this->application) === self::CONNECTIONS;
        $this->samples->take(function () use ($pool): void {
            $pool->close();
            $this->awaitEnd();
        });

        return $right;
    }

    private function killedPool(): bool
    {
        $pool = new PostgresPool($this->options(), self::CONNECTIONS);
        $queries = array_map(
            static fn() => async(static fn() => $pool->query(self::SLEEP)),
            range(1, self::CONNECTIONS),
        );
        $this->activity->until(
            fn(Activity $activity): bool => $activity->sleepingProcesses($this->application) === self::CONNECTIONS,
            self::TIMEOUT,
        );
        $this->samples->take(function () use ($pool): void {
            $pool->kill();
            $this->awaitEnd();
        });
        [$failures] = awaitAll($queries);
        $expected = array_filter(
            $failures,
            static fn(\Throwable $failure): bool
                => $failure instanceof ConnectionClosedException || $failure instanceof ConnectionLostException,
        );

        return \count($expected) === self::CONNECTIONS;
    }

    private function killedClient(): bool
    {
        $command = [
            \PHP_BINARY,
            ...Program::PHP_OPTIONS,
            __DIR__ . '/victim.php',
            $this->application,
        ];
        $process = proc_open($command, [['file', '/dev/null', 'r'], \STDERR, \STDERR], $pipes);
        \assert($process !== false);
        $this->activity->until(
            fn(Activity $activity): bool => $activity->sleepingProcesses($this->application) === 1,
            self::TIMEOUT,
        );
        $this->samples->take(function () use ($process): void {
            proc_terminate($process, 9);
            $this->awaitEnd();
        });
        proc_close($process);

        return true;
    }

    private function awaitEnd(): void
    {
        $this->activity->until(
            fn(Activity $activity): bool => $activity->backends($this->application) === 0,
            self::TIMEOUT,
        );
    }

    private function options(): PostgresOptions
    {
        return PostgresOptions::fromDsn($this->target->dsn())->with(['applicationName' => $this->application]);
    }
}

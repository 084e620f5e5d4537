<?php

declare(strict_types=1);

namespace Spindle\Bench\Postgres;

use Spindle\Postgres\PoolTimeoutException;
use Spindle\Postgres\PostgresPool;
use Spindle\Postgres\PostgresPoolOptions;

use function Amp\async;
use function Amp\delay;
use function Amp\Future\await;

/** Many fibers that wait for the only connection of a pool: their order, and the delay of their timeouts. */
final readonly class Acquiring
{
    /** Acquire timeout in seconds. */
    private const ACQUIRE_TIMEOUT = 0.5;

    /** Seconds after which the connection is released, when all fibers get it. */
    private const HOLD_SECONDS = 0.05;

    public function __construct(private Job $job, private Target $target) {}

    /** @return array<string, mixed> milliseconds by which the latest timeout was late */
    public function figures(): array
    {
        [$order, $waited] = $this->served();
        [$late, $lateOrder] = $this->timedOut();
        $inOrder = range(0, $this->job->count - 1);

        return [
            'figure' => max([0.0, ...$late]),
            'first' => min([\INF, ...$late]),
            'waited' => $waited,
            'results' => \count($order) + \count($lateOrder),
            'right' => $order === $inOrder && $lateOrder === $inOrder,
        ];
    }

    /**
     * Lets all fibers get the connection.
     *
     * @return array{list<int>, array<string, int>} fibers in the order of their turns; number of waits by upper bound
     */
    private function served(): array
    {
        $pool = $this->pool(60.0);
        $held = $pool->acquire();
        [$order, $fibers] = [[], []];
        for ($number = 0; $number < $this->job->count; ++$number) {
            $fibers[] = async(static function () use ($pool, $number, &$order): void {
                $borrowed = $pool->acquire();
                $order[] = $number;
                $borrowed->release();
            });
        }
        delay(self::HOLD_SECONDS);
        $held->release();
        await($fibers);
        $waited = [];
        $before = 0;
        foreach ($pool->statistics() as $name => $count) {
            if (preg_match('/^wait_seconds_le_(.+)_total$/D', $name, $match) === 1) {
                $waited["{$match[1]} s"] = (int) $count - $before;
                $before = (int) $count;
            }
        }
        $pool->close();

        return [$order, $waited];
    }

    /**
     * Lets all fibers time out.
     *
     * @return array{list<float>, list<int>} delay of each timeout in milliseconds; fibers in the order of timeouts
     */
    private function timedOut(): array
    {
        $pool = $this->pool(self::ACQUIRE_TIMEOUT);
        $held = $pool->acquire();
        [$late, $order, $fibers] = [[], [], []];
        for ($number = 0; $number < $this->job->count; ++$number) {
            $fibers[] = async(static function () use ($pool, $number, &$late, &$order): void {
                $begin = hrtime(true);
                try {
                    $pool->acquire()->release();
                } catch (PoolTimeoutException) {
                    $late[] = (hrtime(true) - $begin) / 1e6 - 1e3 * self::ACQUIRE_TIMEOUT;
                    $order[] = $number;
                }
            });
        }
        await($fibers);
        $held->release();
        $pool->close();

        return [$late, $order];
    }

    private function pool(float $acquireTimeout): PostgresPool
    {
        return new PostgresPool(
            $this->target->dsn(),
            1,
            new PostgresPoolOptions(acquireTimeout: $acquireTimeout),
        );
    }
}

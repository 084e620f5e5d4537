<?php

declare(strict_types=1);

namespace Spindle\Bench\Postgres;

use Spindle\Postgres\PostgresConnection;

/** Rate of small statements. */
final readonly class Throughput
{
    /** Divisor of the number of runs for the warm-up, which opens connections and prepares statements. */
    private const WARM_UP_DIVISOR = 10;

    /** Seconds to wait until closed connections are gone. */
    private const CLOSE_TIMEOUT = 5.0;

    public function __construct(private Job $job, private Target $target) {}

    /** @return array<string, mixed> */
    public function figures(): array
    {
        $load = Load::of($this->job->what, $this->job->variant, $this->target->schema);
        $figures = $this->job->contestant->isPgbench() ? $this->ofPgbench($load) : $this->ofClient($load);
        $figures['right'] = $figures['right'] && $this->isDone($load, $figures['done']);
        // The figure of sleeping statements is their time.
        $figures['figure'] = $this->isCold() ? $figures['seconds'] : $figures['rate'];

        return $figures;
    }

    /**
     * @return array{
     *     rate: float,
     *     seconds: float,
     *     cpu: float,
     *     server: float|null,
     *     results: int,
     *     count: int,
     *     done: int,
     *     right: bool,
     * }
     */
    private function ofClient(Load $load): array
    {
        $count = $this->job->count;
        $warmUp = $this->isCold() ? 0 : max(1, intdiv($count, self::WARM_UP_DIVISOR));
        $meter = Meter::start($this->target);
        $client = $this->job->contestant->client($this->target, $this->job->shape);
        if ($warmUp > 0) {
            $client->run($load, $warmUp);
            $meter = Meter::start($this->target);
        }
        $right = $client->run($load, $count);
        $figures = $meter->read();
        $client->close();

        return $figures + [
            'rate' => $count / $figures['seconds'],
            'results' => $right,
            'count' => $count,
            'done' => $warmUp + $count,
            'right' => $right === $count,
        ];
    }

    /**
     * @return array{
     *     rate: float,
     *     seconds: float,
     *     cpu: float,
     *     server: float|null,
     *     results: int,
     *     count: int,
     *     done: int,
     *     right: bool,
     * }
     */
    private function ofPgbench(Load $load): array
    {
        $backends = (new Activity($this->target))->backends();
        $meter = Meter::start($this->target);
        $result = (new Pgbench(
            $this->target,
            $this->job->shape->connections,
            $this->job->contestant === Contestant::PgbenchPipeline,
        ))->run($load, $this->job->count);
        $seconds = $meter->seconds();
        (new Activity($this->target))->until(
            static fn(Activity $activity): bool => $activity->backends() <= $backends,
            self::CLOSE_TIMEOUT,
        );

        return [
            'seconds' => $seconds,
            'results' => $result['count'],
            'done' => $result['count'],
        ] + $result + $meter->read();
    }

    private function isDone(Load $load, int $done): bool
    {
        $connection = PostgresConnection::connect($this->target->dsn());
        try {
            return $load->isDone(
                static fn(string $sql, int $count): mixed => $connection->query($sql, [$count])->value(),
                $done,
            );
        } finally {
            $connection->close();
        }
    }

    private function isCold(): bool
    {
        return $this->job->what === Measurement::Sleep;
    }
}

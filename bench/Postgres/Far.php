<?php

declare(strict_types=1);

namespace Spindle\Bench\Postgres;

use Spindle\Bench\Aircraft\Endpoint;
use Spindle\Bench\Aircraft\FarDatabase;
use Spindle\Postgres\PostgresPool;

use function Amp\async;
use function Amp\Future\await;

/** Fibers that each send a different, already prepared statement to a distant server. */
final readonly class Far
{
    /** Seconds of a round trip. */
    private const ROUND_TRIP_SECONDS = 0.02;

    /** Earlier executions of each statement. */
    private const EARLIER_EXECUTIONS = 3;

    public function __construct(private Job $job, private Target $target) {}

    /** @return array<string, mixed> milliseconds until all statements are answered */
    public function figures(): array
    {
        $far = new FarDatabase(new Endpoint($this->target->parameters), self::ROUND_TRIP_SECONDS);
        $there = new Target($far->endpoint->parameters, null, $this->target->schema, null);
        $pool = new PostgresPool(
            $there->dsn(),
            $this->job->shape->connections,
        );
        for ($times = 0; $times < self::EARLIER_EXECUTIONS; ++$times) {
            $this->all($pool);
        }
        $begin = hrtime(true);
        $right = $this->all($pool);
        $milliseconds = (hrtime(true) - $begin) / 1e6;
        $connections = $pool->statistics()['opened_total'];
        $pool->close();

        return [
            'figure' => $milliseconds,
            'results' => $right,
            'connections' => $connections,
            'right' => $right === $this->job->count,
        ];
    }

    /** @return int number of right answers */
    private function all(PostgresPool $pool): int
    {
        $fibers = [];
        for ($number = 1; $number <= $this->job->count; ++$number) {
            $sql = "SELECT name, {$number} AS number FROM {$this->target->schema}.items WHERE id = \$1";
            $fibers[] = async(static fn(): bool => $pool->query($sql, [$number])->value() === "name {$number}");
        }

        return \count(array_filter(await($fibers), static fn(mixed $isRight): bool => $isRight === true));
    }
}

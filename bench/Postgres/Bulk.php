<?php

declare(strict_types=1);

namespace Spindle\Bench\Postgres;

use Spindle\Bench\Support\ProcessStatus;
use Spindle\Bench\Support\Statistics;
use Spindle\Postgres\PostgresConnection;

/** Measures many rows and large values. */
final readonly class Bulk
{
    private const WARM_UP_RUNS = 3;
    private const MEGABYTE = 1 << 20;

    private BulkClient $client;

    public function __construct(private Job $job, private Target $target)
    {
        // As text, a float gets as many digits as it needs to be read back unchanged.
        ini_set('precision', '-1');
        $this->client = $job->contestant->bulk($target);
    }

    /** @return array<string, mixed> */
    public function figures(): array
    {
        $figures = match ($this->job->what) {
            Measurement::Rows => $this->rows(),
            Measurement::Parameter => $this->parameter(),
            Measurement::Stream => $this->withMemory(
                fn(): bool
                    => $this->areAll($this->client->stream("SELECT id, name, score FROM {$this->target->schema}.many")),
            ),
            Measurement::Copy => $this->withMemory($this->copy(...)),
            default => throw new \LogicException("{$this->job->what->value} is not a bulk measurement"),
        };
        $this->client->close();

        return $figures;
    }

    /** @return array<string, mixed> milliseconds */
    private function rows(): array
    {
        $sql = "SELECT id, name, score FROM {$this->target->schema}.few";
        for ($i = 0; $i < self::WARM_UP_RUNS; ++$i) {
            $this->client->rows($sql);
        }
        [$times, $right] = [[], 0];
        $meter = Meter::start($this->target);
        for ($i = 0; $i < $this->job->count; ++$i) {
            $begin = hrtime(true);
            $rows = $this->client->rows($sql);
            $times[] = (hrtime(true) - $begin) / 1e6;
            $right += \count($rows) === Tables::READ_ROWS ? 1 : 0;
            unset($rows);
        }

        return $meter->read() + [
            'figure' => Statistics::of($times)->median,
            'count' => $this->job->count,
            'results' => $right,
            'right' => $right === $this->job->count && $this->areAll($this->client->rows($sql), Tables::READ_ROWS),
        ];
    }

    /** @return array<string, mixed> milliseconds in all, and of the longest gap */
    private function parameter(): array
    {
        $bytes = random_bytes(max(1, $this->job->bytes));
        [$times, $gaps, $right] = [[], [], 0];
        $meter = Meter::start($this->target);
        for ($i = 0; $i < $this->job->count; ++$i) {
            [$begin, $echo] = [hrtime(true), ''];
            $gaps[] = 1e3 * Ticks::during(function () use ($bytes, &$echo): void {
                $echo = $this->client->echo($bytes);
            });
            $times[] = (hrtime(true) - $begin) / 1e6;
            $right += $echo === $bytes ? 1 : 0;
        }

        return $meter->read() + [
            'figure' => Statistics::of($times)->median,
            'gap' => max([0.0, ...$gaps]),
            'count' => $this->job->count,
            'results' => $right,
            'right' => $right === $this->job->count,
        ];
    }

    /**
     * @param \Closure(): bool $work returns whether the result was right
     *
     * @return array<string, mixed> rows per second, and the largest growth of the process in megabytes
     */
    private function withMemory(\Closure $work): array
    {
        $process = ProcessStatus::ofThis();
        $process->forgetPeak();
        $before = $process->memory();
        $meter = Meter::start($this->target);
        $right = $work();
        $figures = $meter->read();

        return $figures + [
            'figure' => $this->job->count / $figures['seconds'],
            'growth' => ($process->peak() - $before) / self::MEGABYTE,
            'count' => $this->job->count,
            'results' => $this->job->count,
            'right' => $right
                && (
                    $this->job->what !== Measurement::Copy
                    || $this->job->variant === Variant::Out
                    || $this->isCopied()
                ),
        ];
    }

    private function copy(): bool
    {
        $schema = $this->target->schema;
        match ($this->job->variant) {
            Variant::Arrays => $this->client->copyArrays("{$schema}.copied", $this->arrays()),
            Variant::Strings => $this->client->copyStrings("{$schema}.copied", $this->strings()),
            default => null,
        };

        return $this->job->variant !== Variant::Out || $this->areAllLines($this->client->copyOut("{$schema}.many"));
    }

    /** @return \Generator<int, array{int, string, float}> */
    private function arrays(): \Generator
    {
        for ($id = 1; $id <= $this->job->count; ++$id) {
            yield Tables::row($id);
        }
    }

    /** @return \Generator<int, string> */
    private function strings(): \Generator
    {
        for ($id = 1; $id <= $this->job->count; ++$id) {
            yield implode("\t", Tables::row($id)) . "\n";
        }
    }

    /** @param iterable<array<array-key, mixed>> $rows */
    private function areAll(iterable $rows, ?int $count = null): bool
    {
        [$sum, $wrong, $seen] = [0, 0, 0];
        foreach ($rows as $row) {
            ['id' => $id, 'name' => $name, 'score' => $score] = $row;
            ++$seen;
            if (\is_int($id) && [$id, $name, $score] === Tables::row($id)) {
                $sum += $id;
            } else {
                ++$wrong;
            }
        }

        return $wrong === 0 && $seen === ($count ?? $this->job->count) && $sum === intdiv($seen * ($seen + 1), 2);
    }

    /** @param iterable<string> $lines */
    private function areAllLines(iterable $lines): bool
    {
        [$sum, $wrong, $seen] = [0, 0, 0];
        foreach ($lines as $line) {
            ++$seen;
            $sum += $id = (int) $line;
            $wrong += str_starts_with($line, "{$id}\tname {$id}\t") ? 0 : 1;
        }

        return $wrong === 0 && $seen === $this->job->count && $sum === intdiv($seen * ($seen + 1), 2);
    }

    private function isCopied(): bool
    {
        $connection = PostgresConnection::connect($this->target->dsn());
        $sql = 'SELECT count(*) = $1 AND count(DISTINCT id) = $1'
            . " AND bool_and(name = 'name ' || id AND score = id / 7.0::float8 AND id BETWEEN 1 AND \$1)"
            . " FROM {$this->target->schema}.copied";
        try {
            return $connection->query($sql, [$this->job->count])->value() === true;
        } finally {
            $connection->close();
        }
    }
}

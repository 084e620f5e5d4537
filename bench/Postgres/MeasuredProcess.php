<?php

declare(strict_types=1);

namespace Spindle\Bench\Postgres;

use Spindle\Bench\Support\Checkout;
use Spindle\Bench\Support\Program;
use Spindle\Bench\Support\Series;

/** Measures contestants, each in a fresh process. */
final readonly class MeasuredProcess
{
    /** @param int $limit time limit of a measurement, in seconds */
    public function __construct(private Server $server, private int $limit) {}

    /** @param Checkout|null $checkout the measured Spindle; null for other contestants */
    public function series(Job $job, string $label, string $context, ?Checkout $checkout = null): Series
    {
        return new Series($label, function (Series $series) use ($job, $checkout): float {
            $this->server->prepare($job->what, $job->count);

            return $this->measure($job, $series, $checkout);
        }, $context, $checkout);
    }

    private function measure(Job $job, Series $series, ?Checkout $checkout): float
    {
        $command = [
            \PHP_BINARY,
            ...Program::PHP_OPTIONS,
            \dirname(__DIR__) . '/postgres-contestant.php',
            ...$job->arguments(),
        ];
        [$status, $output] = Program::run(
            ['timeout', '-k', '5', (string) $this->limit, ...$checkout?->command($command) ?? $command],
        );
        $data = json_decode($output, true);
        if ($status !== 0 || !\is_array($data) || !\is_float($data['figure'] ?? null)) {
            throw new \RuntimeException(
                $status === 124
                    ? "it has not finished within {$this->limit} seconds"
                    : Program::failure($status, $output),
            );
        }
        /** @var array{figure: float, results: int, right: bool} $data */
        $series->record($data);
        if (!$data['right']) {
            $series->note("not all results are right: {$data['results']} results");
        }

        return $data['figure'];
    }
}

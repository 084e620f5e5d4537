<?php

declare(strict_types=1);

namespace Spindle\Bench\Postgres;

use Spindle\Bench\Support\Program;
use Spindle\Bench\Support\Series;

/** Measures contestants, each in a fresh process. */
final readonly class MeasuredProcess
{
    /** @param int $limit seconds that a measurement may take */
    public function __construct(private Server $server, private int $limit) {}

    public function series(Job $job, string $label, string $context): Series
    {
        return new Series($label, function (Series $series) use ($job): float {
            $this->server->prepare($job->what, $job->count);

            return $this->measure($job, $series);
        }, $context);
    }

    private function measure(Job $job, Series $series): float
    {
        $command = [\PHP_BINARY, ...Program::PHP_OPTIONS, \dirname(__DIR__) . '/postgres-contestant.php', ...$job->arguments()];
        [$status, $output] = Program::run(['timeout', '-k', '5', (string) $this->limit, ...$command]);
        $data = json_decode($output, true);
        if ($status !== 0 || !\is_array($data) || !\is_float($data['figure'] ?? null)) {
            throw new \RuntimeException($status === 124 ? "it was not done after {$this->limit} seconds" : "it ended with {$status}");
        }
        /** @var array{figure: float, results: int, right: bool} $data */
        $series->record($data);
        if (!$data['right']) {
            $series->note("not all right: {$data['results']} results");
        }

        return $data['figure'];
    }
}

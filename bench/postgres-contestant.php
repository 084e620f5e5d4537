<?php

declare(strict_types=1);

/*
 * Measures one contestant of the PostgreSQL benchmarks in this process, which does nothing else, and prints one line of
 * JSON. Arguments select the measurement; the environment names the server.
 */

use Spindle\Bench\Postgres\Acquiring;
use Spindle\Bench\Postgres\Bulk;
use Spindle\Bench\Postgres\Endings;
use Spindle\Bench\Postgres\Far;
use Spindle\Bench\Postgres\Gaps;
use Spindle\Bench\Postgres\Job;
use Spindle\Bench\Postgres\Measurement;
use Spindle\Bench\Postgres\Target;
use Spindle\Bench\Postgres\Throughput;
use Spindle\Bench\Support\Usage;

require __DIR__ . '/bootstrap.php';

/** @var non-empty-list<string> $argv */
[$job, $target] = [Job::of(array_slice($argv, 1)), Target::fromEnvironment()];
$figures = match ($job->what) {
    Measurement::Select, Measurement::Cells, Measurement::Unit, Measurement::Update, Measurement::Sleep
        => (new Throughput($job, $target))->figures(),
    Measurement::Rows, Measurement::Parameter, Measurement::Stream, Measurement::Copy => (new Bulk(
        $job,
        $target,
    ))->figures(),
    Measurement::Gaps => (new Gaps($job, $target))->figures(),
    Measurement::Cancel => (new Endings($job, $target))->figures(),
    Measurement::Far => (new Far($job, $target))->figures(),
    Measurement::Acquire => (new Acquiring($job, $target))->figures(),
};

echo json_encode($figures + ['peak' => Usage::now()->peak], JSON_THROW_ON_ERROR | JSON_PRESERVE_ZERO_FRACTION), "\n";

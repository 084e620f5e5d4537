<?php

declare(strict_types=1);

/*
 * A client with a query of one minute, to be killed. Argument: the application's name.
 */

use Spindle\Bench\Postgres\Endings;
use Spindle\Bench\Postgres\Target;
use Spindle\Postgres\PostgresConnection;
use Spindle\Postgres\PostgresOptions;

require dirname(__DIR__) . '/bootstrap.php';

/** @var array{string, string} $argv */
[, $application] = $argv;
PostgresConnection::connect(
    PostgresOptions::fromDsn(Target::fromEnvironment()->dsn())->with(['applicationName' => $application]),
)->query(Endings::SLEEP);

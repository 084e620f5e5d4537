<?php

declare(strict_types=1);

/*
 * A client with a query of one minute, to be killed. Arguments: the contestant and the application's name.
 */

use Spindle\Bench\Postgres\Contestant;
use Spindle\Bench\Postgres\Endings;
use Spindle\Bench\Postgres\SpindleClient;
use Spindle\Bench\Postgres\Target;
use Spindle\Postgres\PostgresConnection;
use Spindle\Postgres\PostgresDriver;

require dirname(__DIR__) . '/bootstrap.php';

/** @var array{string, string, string} $argv */
[, $contestant, $application] = $argv;
$driver = Contestant::from($contestant)->driver() ?? PostgresDriver::Native;
PostgresConnection::connect(
    SpindleClient::options(Target::fromEnvironment(), $driver)->with(['applicationName' => $application]),
)->query(Endings::SLEEP);

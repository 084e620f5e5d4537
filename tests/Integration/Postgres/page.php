<?php

declare(strict_types=1);

/* A page that asks a database over a persistent connection, for whatever server asks for it. */

use Spindle\Postgres\PostgresConnection;
use Spindle\Postgres\PostgresDriver;
use Spindle\Postgres\PostgresOptions;

require dirname(__DIR__, 3) . '/vendor/autoload.php';

$connection = PostgresConnection::connect(
    PostgresOptions::of('{dsn}')->with(['driver' => PostgresDriver::ExtPgsql, 'persistent' => true]),
);
$value = $connection->query('SELECT $1::int', ['42'])->value();
$statements = $connection->query("SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%1::int'")->value();
$connection->query('BEGIN');
echo json_encode([$connection->backendPid(), uniqid(), $value, $statements], JSON_THROW_ON_ERROR);

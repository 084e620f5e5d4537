<?php

declare(strict_types=1);

// Commands for a deployment.
//
//   php console.php migrate     update the tables
//   php console.php seed 10000  add N aircraft
//   php console.php routes      compile the routes after a change

use Aircraft\Fleet;
use Aircraft\Http\Routes;
use Aircraft\InvalidImportException;
use Aircraft\Migrations;
use Aircraft\Settings;
use Aircraft\Transfer;
use Spindle\Postgres\PostgresConnection;
use Spindle\Postgres\PostgresException;

require_once __DIR__ . '/../../vendor/autoload.php';

$database = static fn(): PostgresConnection => PostgresConnection::connect(Settings::ofEnvironment()->database);
$count = filter_var($argv[2] ?? 10_000, FILTER_VALIDATE_INT, ['options' => ['min_range' => 1]]);
$wish = $argv[1] ?? '';
if (!in_array($wish, ['migrate', 'seed', 'routes'], true) || $count === false) {
    fwrite(STDERR, "usage: php console.php migrate | seed NUMBER | routes\n");
    exit(64);
}
try {
    if ($wish === 'migrate') {
        $done = (new Migrations($database()))->run();
        echo $done === [] ? 'nothing to migrate' : 'migrated: ' . implode(', ', $done), "\n";
    } elseif ($wish === 'seed') {
        echo (new Transfer($database()))->import(Fleet::csv($count)), " aircraft added\n";
    } else {
        Routes::compile();
    }
} catch (InvalidImportException|PostgresException|ValueError $failure) {
    fwrite(STDERR, "error: {$failure->getMessage()}\n");
    exit(1);
}

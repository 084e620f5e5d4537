<?php

declare(strict_types=1);

// What is done beside serving, such as at a deployment.
//
//   php console.php migrate     bring the tables up to date
//   php console.php seed 10000  add so many aircraft
//   php console.php routes      compile the routes after a change of them

use Aircraft\Fleet;
use Aircraft\Http\Routes;
use Aircraft\Migrations;
use Aircraft\Settings;
use Aircraft\Transfer;
use Spindle\Postgres\PostgresConnection;

require_once __DIR__ . '/../../vendor/autoload.php';

$database = static fn(): PostgresConnection => PostgresConnection::connect(Settings::ofEnvironment()->database);
switch ($argv[1] ?? '') {
    case 'migrate':
        $done = (new Migrations($database()))->run();
        echo $done === [] ? 'nothing to migrate' : 'migrated: ' . implode(', ', $done), "\n";
        break;
    case 'seed':
        echo (new Transfer($database()))->import(Fleet::csv((int) ($argv[2] ?? 10_000))), " aircraft added\n";
        break;
    case 'routes':
        Routes::compile();
        break;
    default:
        fwrite(\STDERR, "usage: php console.php migrate | seed NUMBER | routes\n");
        exit(64);
}

<?php

declare(strict_types=1);

/*
 * The clients of the aircraft application: crud-clients.php ADDRESS TAG CLIENTS CYCLES SECONDS.
 *
 * Runs as a separate process. Prints its figures as JSON, then an end mark.
 */

use Spindle\Bench\Aircraft\CrudClients;
use Spindle\Bench\Http\Load;

require __DIR__ . '/../bootstrap.php';

/** @var array{string, string, string, string, string, string} $argv */
$figures = (new CrudClients($argv[1], $argv[2], (int) $argv[3], (int) $argv[4], (float) $argv[5]))->run();
echo json_encode($figures, JSON_THROW_ON_ERROR | JSON_PRESERVE_ZERO_FRACTION), "\n", Load::MARK, "\n";

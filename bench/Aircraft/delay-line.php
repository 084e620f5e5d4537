<?php

declare(strict_types=1);

/*
 * Delays traffic to and from a database in a separate process: delay-line.php SOCKET SERVER SECONDS.
 */

use Spindle\Bench\Aircraft\DelayLine;

require __DIR__ . '/../bootstrap.php';

/** @var array{string, string, string, string} $argv */
(new DelayLine($argv[1], $argv[2], (float) $argv[3]))->run();

<?php

declare(strict_types=1);

/*
 * Delays what goes to a database and comes from it, in a process of its own: delay-line.php SOCKET SERVER SECONDS.
 */

use Spindle\Bench\Aircraft\DelayLine;

require __DIR__ . '/../bootstrap.php';

/** @var array{string, string, string, string} $argv */
(new DelayLine($argv[1], $argv[2], (float) $argv[3]))->run();

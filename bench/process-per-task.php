<?php

declare(strict_types=1);

/*
 * A child process of Spindle\Bench\Tasks\ProcessPerTask.
 *
 *     process-per-task.php TASK
 */

require __DIR__ . '/bootstrap.php';

/** @var array{string, string} $argv */
$task = unserialize((string) base64_decode($argv[1], true));
assert(is_callable($task));
echo base64_encode(serialize($task()));

<?php

declare(strict_types=1);

/*
 * A worker process, or the host of workers that are its forks or threads. Its settings come through its standard input,
 * for they hold secrets.
 */

require __DIR__ . '/classes.php';
$spindleBoot = Spindle\Worker\Internal\Process\Boot::fromInput();
try {
    foreach ($spindleBoot->files() as $spindleFile) {
        require_once $spindleFile; // here, where globals are global
    }
} catch (Throwable $spindleFailure) {
    $spindleBoot->fail($spindleFailure);
}
unset($spindleFile);
$spindleBoot->work();

<?php

declare(strict_types=1);

/*
 * A worker process, or the host of workers that are its forks or threads. Its settings come through its standard input,
 * for they hold secrets.
 */

require __DIR__ . '/classes.php';
Spindle\Worker\Internal\Process\Boot::fromInput();
try {
    while (Spindle\Worker\Internal\Process\Boot::hasFile()) {
        require_once Spindle\Worker\Internal\Process\Boot::nextFile(); // here, where globals are global
    }
} catch (Throwable $spindleFailure) {
    Spindle\Worker\Internal\Process\Boot::fail($spindleFailure);
}
Spindle\Worker\Internal\Process\Boot::work();

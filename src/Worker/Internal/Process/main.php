<?php

declare(strict_types=1);

// Main script of a worker process, or of a host, which starts workers as forks or threads. The script reads its
// settings from standard input, because the settings contain secrets.

require __DIR__ . '/classes.php';
Spindle\Worker\Internal\Process\WorkerBoot::fromInput();
try {
    // The files are loaded here, and not in a method, because they need the global scope.
    while (Spindle\Worker\Internal\Process\WorkerBoot::hasFile()) {
        require_once Spindle\Worker\Internal\Process\WorkerBoot::nextFile();
    }
} catch (Throwable $spindleFailure) {
    Spindle\Worker\Internal\Process\WorkerBoot::fail($spindleFailure);
}
Spindle\Worker\Internal\Process\WorkerBoot::work();

<?php

declare(strict_types=1);

// Main script of a worker process, or of a host, whose forks or threads are workers. It reads its settings from
// standard input, because they contain secrets.

require __DIR__ . '/classes.php';
Spindle\Worker\Internal\Process\WorkerBoot::fromInput();
try {
    while (Spindle\Worker\Internal\Process\WorkerBoot::hasFile()) {
        require_once Spindle\Worker\Internal\Process\WorkerBoot::nextFile(); // here, in the global scope
    }
} catch (Throwable $spindleFailure) {
    Spindle\Worker\Internal\Process\WorkerBoot::fail($spindleFailure);
}
Spindle\Worker\Internal\Process\WorkerBoot::work();

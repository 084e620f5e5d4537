<?php

declare(strict_types=1);

// Shows whether a thread, a fork and a process see a global variable that was set before they started.

use Spindle\Worker\WorkerPool;

require __DIR__ . '/autoload.php';

$greeting = 'set before';

$look = static fn(): mixed => $GLOBALS['greeting'] ?? null;

// A thread has its own globals.
if (class_exists(parallel\Runtime::class)) {
    $runtime = new parallel\Runtime();
    $seen = $runtime->run(static function (): mixed {
        return $GLOBALS['greeting'] ?? null;
    })?->value();
    printf("thread: %s\n", var_export($seen, true));
    $runtime->close();
} else {
    echo "thread: not available here, needs a thread-safe PHP with ext-parallel\n";
}

// A fork is a copy of the whole process.
if (function_exists('pcntl_fork')) {
    $pid = pcntl_fork();
    if ($pid === 0) {
        printf("fork: %s\n", var_export($look(), true));
        exit(0);
    }
    pcntl_waitpid($pid, $status);
} else {
    echo "fork: not available here, needs ext-pcntl\n";
}

// A worker is a separate process that has loaded the autoloader. A task receives its data as arguments.
$pool = new WorkerPool(workers: 1);
printf("process: %s\n", var_export($pool->submit($look)->await(), true));
printf("process, told: %s\n", var_export($pool->submit(static fn(): string => $greeting)->await(), true));

<?php

declare(strict_types=1);

/*
 * A worker process: runs tasks for a pool. Its settings come through its standard input, for they hold secrets.
 */

// What runs before there is an autoloader; and as little of it as possible, for a worker is to start soon.
foreach ([
    dirname(__DIR__, 3) . '/SpindleException.php',
    dirname(__DIR__, 2) . '/UnserializableException.php',
    dirname(__DIR__, 2) . '/Thrown.php',
    dirname(__DIR__, 2) . '/TaskContext.php',
    dirname(__DIR__) . '/Protocol.php',
    dirname(__DIR__) . '/Packing.php',
    dirname(__DIR__) . '/Portable.php',
    dirname(__DIR__) . '/TaskCode.php',
    __DIR__ . '/Failure.php',
    __DIR__ . '/Wire.php',
    __DIR__ . '/Worker.php',
    __DIR__ . '/Boot.php',
] as $spindleFile) {
    require $spindleFile;
}
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

<?php

declare(strict_types=1);

/*
 * The guardian waits until its owner dismisses it or ends. Then it removes the temporary server of the owner.
 *
 * - Arguments: the pid of the owner, the class that removes the server, and the directory of the server.
 * - Descriptor 0: a pipe from the owner. Data in the pipe, or a closed pipe, ends the wait. If the owner was killed, a
 *   fork of the owner may keep the pipe open. So the guardian also checks the pid of its parent.
 */

use Spindle\Internal\Launcher\Descriptors;
use Spindle\Internal\Launcher\Process\Files;
use Spindle\Internal\Launcher\Process\Signals;
use Spindle\Internal\Testing\Program;
use Spindle\Internal\Testing\Removal;
use Spindle\Internal\Testing\ServerException;
use Spindle\Internal\Testing\TestServerState;
use Spindle\Internal\Testing\Wait;
use Spindle\Internal\Warnings;

/** @var array{string, string, class-string<Removal>, string} $argv */
[, $owner, $removal, $directory] = $argv;

// The files are loaded now, because they may be deleted later.
foreach ([
    Files::class,
    Signals::class,
    Warnings::class,
    Wait::class,
    Descriptors::class,
    ServerException::class,
    Program::class,
    TestServerState::class,
    Removal::class,
    $removal,
] as $class) {
    require dirname(__DIR__, 2) . strtr(substr($class, strlen('Spindle')), '\\', '/') . '.php';
}

$isOwned = static function () use ($owner): bool {
    $stat = Files::read('/proc/self/stat');

    return $stat === false || preg_match("/\\) \\S {$owner} /", $stat) === 1;
};

do {
    [$reads, $none] = [[STDIN], null];
} while (stream_select($reads, $none, $none, 0, 250_000) === 0 && $isOwned());

$removal::remove($directory);

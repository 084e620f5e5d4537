<?php

declare(strict_types=1);

/*
 * Waits until the process that started it is done with a temporary server or gone, then removes that server.
 *
 * Arguments: that process's id, the class that removes, the server's directory. Descriptor 0: a pipe from that process,
 * whose data or end is the sign. Forks of a killed process may keep it open, so the parent's id is checked as well.
 */

use Spindle\Internal\Launcher\Process\Files;
use Spindle\Internal\Launcher\Process\Signals;
use Spindle\Internal\Testing\Removal;
use Spindle\Internal\Testing\TestServerState;
use Spindle\Internal\Testing\Wait;

/** @var array{string, string, class-string<Removal>, string} $argv */
[, $owner, $removal, $directory] = $argv;

// Loaded now, while the files certainly exist.
foreach ([Files::class, Signals::class, Wait::class, TestServerState::class, Removal::class, $removal] as $class) {
    require dirname(__DIR__, 2) . strtr(substr($class, strlen('Spindle')), '\\', '/') . '.php';
}

$isOwned = static function () use ($owner): bool {
    $stat = @file_get_contents('/proc/self/stat');

    return $stat === false || preg_match("/\\) \\S {$owner} /", $stat) === 1;
};

do {
    [$reads, $none] = [[STDIN], null];
} while (stream_select($reads, $none, $none, 0, 250_000) === 0 && $isOwned());

$removal::remove($directory);

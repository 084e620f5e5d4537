<?php

declare(strict_types=1);

/*
 * Waits until the process that started it is done with a cluster or gone, then removes the cluster.
 *
 * Arguments: that process's id, the cluster's directory. Descriptor 0: a pipe from that process, which says something or
 * ends. It does not end where that process was killed and has left forks; that it has another parent then tells as well.
 */

use Spindle\Postgres\Testing\Internal\Leftovers;

require dirname(__DIR__, 3) . '/Internal/Launcher/Process/Files.php';
require dirname(__DIR__, 3) . '/Internal/Launcher/Process/Signals.php';
require __DIR__ . '/Leftovers.php';

/** @var array{string, string, string} $argv */
[, $owner, $directory] = $argv;

$isOwned = static function () use ($owner): bool {
    $stat = @file_get_contents('/proc/self/stat');

    return $stat === false || preg_match("/\\) \\S {$owner} /", $stat) === 1;
};

do {
    [$reads, $none] = [[STDIN], null];
} while (stream_select($reads, $none, $none, 0, 250_000) === 0 && $isOwned());

Leftovers::remove($directory);

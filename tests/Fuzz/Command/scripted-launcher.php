<?php

declare(strict_types=1);

/*
 * Stands in for a launcher: waits until so many commands have been asked for, then answers with the bytes of a file,
 * in the pieces that another file gives the lengths of, and waits for the pool to go.
 */

use Spindle\Internal\Launcher\Protocol;

require dirname(__DIR__, 3) . '/src/Internal/Launcher/Protocol.php';

[, $directory, $wanted] = $argv + [1 => '', '0'];
$received = '';
$asked = 0;
while ($asked < (int) $wanted && !feof(STDIN)) {
    $received .= (string) fread(STDIN, 8192);
    while (strlen($received) >= Protocol::HEADER) {
        /** @var array{length: int, type: int} $frame */
        $frame = unpack('Vlength/Ctype', $received);
        if (strlen($received) < 4 + $frame['length']) {
            break;
        }
        $asked += $frame['type'] === Protocol::RUN ? 1 : 0;
        $received = substr($received, 4 + $frame['length']);
    }
}
$answer = (string) file_get_contents("{$directory}/answer");
$at = 0;
foreach (explode(',', (string) file_get_contents("{$directory}/lengths")) as $length) {
    if (@fwrite(STDOUT, substr($answer, $at, (int) $length)) === false) {
        break; // the pool has heard enough
    }
    $at += (int) $length;
}
stream_get_contents(STDIN);

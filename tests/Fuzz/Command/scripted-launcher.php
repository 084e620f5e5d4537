<?php

declare(strict_types=1);

/*
 * Stands in for a launcher. It waits until a given number of commands was submitted, then answers with the bytes of a
 * file, and waits until the pool is gone. Another file has the lengths of the pieces in which the bytes are sent.
 */

use Spindle\Internal\Launcher\LauncherProtocol;

require dirname(__DIR__, 3) . '/src/Internal/Launcher/LauncherProtocol.php';

[, $directory, $wanted] = $argv + [1 => '', '0'];
$received = '';
$asked = 0;
while ($asked < (int) $wanted && !feof(STDIN)) {
    $received .= (string) fread(STDIN, 8192);
    while (strlen($received) >= LauncherProtocol::HEADER_BYTES) {
        /** @var array{length: int, type: int} $frame */
        $frame = unpack('Vlength/Ctype', $received);
        if (strlen($received) < 4 + $frame['length']) {
            break;
        }
        $asked += $frame['type'] === LauncherProtocol::RUN ? 1 : 0;
        $received = substr($received, 4 + $frame['length']);
    }
}
$answer = (string) file_get_contents("{$directory}/answer");
$at = 0;
foreach (explode(',', (string) file_get_contents("{$directory}/lengths")) as $length) {
    if (@fwrite(STDOUT, substr($answer, $at, (int) $length)) === false) {
        break; // the pool has closed the connection
    }
    $at += (int) $length;
}
stream_get_contents(STDIN);

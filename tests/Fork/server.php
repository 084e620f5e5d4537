<?php

declare(strict_types=1);

// The process of a ForkServer. It reads this file from standard input. Its arguments are Composer's folder and the
// address of the socket. The script runs in the global scope, as it would by itself.

// This file opens STDOUT and STDERR where they are missing. Each fork loads it when it has opened its own.
$GLOBALS['__composer_autoload_files'] = [md5('amphp/byte-stream:src/functions.php') => true];

// Standard output and standard error are closed: these files have their numbers until a fork has pipes for them.
$placeholders = [fopen('/dev/null', 'w'), fopen('/dev/null', 'w')];

require "{$argv[1]}/autoload.php";
require (new Spindle\Tests\Fork\ForkingProcess(
    $argv[2],
    $placeholders,
    ["{$argv[1]}/amphp/byte-stream/src/functions.php"],
))->awaitScript();

<?php

declare(strict_types=1);

// PHP reads this script of a ForkServer's process from standard input. Its arguments are Composer's folder and the
// address of the socket. A fork runs its own script in the global scope, as if PHP had started it directly.

// The functions of amphp/byte-stream open STDOUT and STDERR if they are missing. Each fork loads them after it has
// opened its own.
$GLOBALS['__composer_autoload_files'] = [md5('amphp/byte-stream:src/functions.php') => true];

// Standard output and standard error are closed. These files occupy their numbers until a fork opens its pipes.
$placeholders = [fopen('/dev/null', 'w'), fopen('/dev/null', 'w')];

require "{$argv[1]}/autoload.php";
require (new Spindle\Tests\Fork\ForkingProcess(
    $argv[2],
    $placeholders,
    ["{$argv[1]}/amphp/byte-stream/src/functions.php"],
))->awaitScript();

<?php

declare(strict_types=1);

/*
 * A process that uses Spindle, for tests of what happens to such a process or around it: calls the static method named
 * by the first argument with the values of the second, which are JSON, and prints what it returns as JSON.
 */

use Spindle\Tests\Host;

require dirname(__DIR__) . '/vendor/autoload.php';

Host::main($argv[1] ?? '', $argv[2] ?? '[]');

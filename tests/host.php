<?php

declare(strict_types=1);

/*
 * Calls a static method in a new process that uses Spindle, for tests of such processes.
 *
 * The first argument names the method, the second holds its arguments as JSON. The result is printed as JSON.
 */

use Spindle\Tests\Host;

require dirname(__DIR__) . '/vendor/autoload.php';

Host::main($argv[1] ?? '', $argv[2] ?? '[]');

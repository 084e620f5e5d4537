<?php

declare(strict_types=1);

/*
 * Bootstrap file of the agents' workers.
 */

use Spindle\Bench\Aircraft\Cores;

require_once __DIR__ . '/../autoload.php';

Cores::yieldSession((int) getmypid());

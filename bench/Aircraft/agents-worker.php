<?php

declare(strict_types=1);

/*
 * What the workers of agents load.
 */

use Spindle\Bench\Aircraft\Cores;

require_once __DIR__ . '/../autoload.php';

Cores::yieldSession((int) getmypid());

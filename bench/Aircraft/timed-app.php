<?php

declare(strict_types=1);

/*
 * The aircraft application with a timed event loop.
 */

use Spindle\Bench\Aircraft\LoopGaps;

require_once __DIR__ . '/../autoload.php';

LoopGaps::record((string) getenv(LoopGaps::VARIABLE));

return require __DIR__ . '/app.php';

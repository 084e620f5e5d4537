<?php

declare(strict_types=1);

/*
 * Served by `spindle serve` in the HTTP benchmarks: CPU work.
 */

use Spindle\Bench\Http\SpindleServer;
use Spindle\Bench\Http\Work;

require_once __DIR__ . '/autoload.php';

return SpindleServer::handler(Work::Burn);

<?php

declare(strict_types=1);

/*
 * What `spindle serve` serves in the HTTP benchmarks: work for the processor.
 */

use Spindle\Bench\Http\SpindleServer;
use Spindle\Bench\Http\Work;

require_once __DIR__ . '/autoload.php';

return SpindleServer::handler(Work::Burn);

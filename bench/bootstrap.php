<?php

declare(strict_types=1);

/*
 * Included first by each benchmark.
 */

use Spindle\Bench\Support\Checkout;
use Spindle\Bench\Support\UsageException;

ini_set('memory_limit', '-1');

require_once __DIR__ . '/autoload.php';

set_exception_handler(static function (Throwable $failure): never {
    $misfit = Checkout::incompatibility($failure);
    if ($misfit !== null) {
        echo "{$misfit}\n"; // the parent reads standard output
        exit(Checkout::MISFIT);
    }
    $usage = $failure instanceof UsageException;
    fwrite(STDERR, 'spindle: ' . ($usage ? $failure->getMessage() : $failure) . "\n");
    exit($usage ? 255 : 1);
});

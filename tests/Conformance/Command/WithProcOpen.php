<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Command;

use Spindle\Command\StartMethod;

/**
 * A launcher that starts commands with proc_open().
 *
 * @phpstan-require-extends CommandPoolTestCase
 */
trait WithProcOpen
{
    protected function start(): StartMethod
    {
        return StartMethod::ProcOpen;
    }
}

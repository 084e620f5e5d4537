<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker;

use Spindle\Worker\WorkerContext;

/** ForkPoolRestTest has the rest of the contract. */
final class ForkPoolTest extends ContextDependentPoolContract
{
    protected function context(): WorkerContext
    {
        return WorkerContext::Fork;
    }
}

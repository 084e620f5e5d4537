<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker;

use Spindle\Worker\WorkerContext;

/** ForkExecutorRestTest has the rest of the contract. */
final class ForkExecutorTest extends ContextDependentExecutorContract
{
    protected function context(): WorkerContext
    {
        return WorkerContext::Fork;
    }
}

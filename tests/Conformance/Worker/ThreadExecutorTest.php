<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker;

use Spindle\Tests\OnThreads;

/** ThreadExecutorRestTest has the rest of the contract. */
final class ThreadExecutorTest extends ContextDependentExecutorContract
{
    use OnThreads;

    protected function tellsTasksOfTheirCancellation(): bool
    {
        return false;
    }
}

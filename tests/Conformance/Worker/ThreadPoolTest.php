<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker;

use Spindle\Tests\OnThreads;

/** ThreadPoolRestTest has the rest of the contract. */
final class ThreadPoolTest extends ContextDependentPoolContract
{
    use OnThreads;

    protected function tellsTasksOfTheirCancellation(): bool
    {
        return false;
    }
}

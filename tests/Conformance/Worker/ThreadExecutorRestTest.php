<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker;

use PHPUnit\Framework\Attributes\Group;
use Spindle\Tests\OnThreads;

/** Quick test runs cover this contract with processes only. */
#[Group('full')]
final class ThreadExecutorRestTest extends ContextIndependentExecutorContract
{
    use OnThreads;

    protected function tellsTasksOfTheirCancellation(): bool
    {
        return false;
    }
}

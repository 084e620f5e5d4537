<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

use PHPUnit\Framework\Attributes\Group;
use Spindle\Worker\WorkerContext;

/** Quick test runs cover these faults with processes only. */
#[Group('full')]
final class ForkWorkerFaultsRestTest extends ContextIndependentFaultsTestCase
{
    protected function context(): WorkerContext
    {
        return WorkerContext::Fork;
    }
}

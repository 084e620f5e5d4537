<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker;

use PHPUnit\Framework\Attributes\Group;
use Spindle\Worker\WorkerContext;

/** Quick test runs cover this contract with processes only. */
#[Group('full')]
final class ForkPoolRestTest extends ContextIndependentPoolContract
{
    protected function context(): WorkerContext
    {
        return WorkerContext::Fork;
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

use PHPUnit\Framework\Attributes\Group;
use Spindle\Tests\OnThreads;

/** Quick test runs cover these faults with processes only. */
#[Group('full')]
final class ThreadWorkerFaultsRestTest extends ContextIndependentFaultsTestCase
{
    use OnThreads;
}

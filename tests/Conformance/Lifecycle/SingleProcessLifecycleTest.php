<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Lifecycle;

/** A supervisor without pcntl serves in its own process. */
final class SingleProcessLifecycleTest extends SupervisorLifecycleTest
{
    protected function php(): array
    {
        return ['-d', 'disable_functions=pcntl_fork'];
    }
}

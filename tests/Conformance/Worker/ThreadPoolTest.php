<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker;

use Spindle\Tests\OnThreads;

final class ThreadPoolTest extends WorkerPoolContract
{
    use OnThreads;

    protected function tellsTasksOfTheirCancellation(): bool
    {
        return false;
    }
}

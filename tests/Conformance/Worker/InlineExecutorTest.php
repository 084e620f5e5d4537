<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker;

use Spindle\Worker\Executor;
use Spindle\Worker\InlineExecutor;

final class InlineExecutorTest extends ExecutorTestCase
{
    use Contract\OfExecutors;

    protected function make(?\Closure $onReport): Executor
    {
        return new InlineExecutor($onReport);
    }

    protected function itemsAhead(): int
    {
        return 1;
    }
}

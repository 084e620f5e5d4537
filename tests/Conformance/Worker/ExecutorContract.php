<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker;

/** The contract of every executor, wherever it runs tasks. */
abstract class ExecutorContract extends ExecutorTestCase
{
    use Contract\OfExecutors;
}

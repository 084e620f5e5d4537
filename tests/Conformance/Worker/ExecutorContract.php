<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker;

/** What every executor promises, wherever it runs tasks. */
abstract class ExecutorContract extends ExecutorTestCase
{
    use Contract\OfExecutors;
}

<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker;

/** The part of the executor contract that is independent of the kind of worker. */
abstract class ContextIndependentExecutorContract extends PoolTestCase
{
    use Contract\IndependentOfContext;
    use SharesPool;
}

<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker;

/** The part of the executor contract whose result may depend on the kind of worker. */
abstract class ContextDependentExecutorContract extends PoolTestCase
{
    use Contract\DependsOnContext;
    use SharesPool;
}

<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker;

/** The part of the pool contract that is independent of the kind of worker. */
abstract class ContextIndependentPoolContract extends PoolTestCase
{
    use Contract\KnowsClasses;
    use Contract\ReplacesWorkers;
    use Contract\IsolatesTasks;
    use Contract\RetriesTasks;
    use Contract\RunsCodeOfResults;
}

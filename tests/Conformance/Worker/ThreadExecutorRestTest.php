<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker;

use PHPUnit\Framework\Attributes\Group;
use Spindle\Tests\OnThreads;

/** Contract of code that all kinds of workers share. Quick test runs cover it with processes only. */
#[Group('full')]
final class ThreadExecutorRestTest extends PoolTestCase
{
    use Contract\CarriesValues;
    use Contract\IsCancelled;
    use Contract\IsAbandoned;
    use Contract\IsShared;
    use Contract\MapsInput;
    use Contract\PullsLazily;
    use Contract\RefusesUnserializable;
    use Contract\RunsTasks;
    use Contract\ReportsFailures;
    use OnThreads;
    use SharesPool;

    protected function tellsTasksOfTheirCancellation(): bool
    {
        return false;
    }
}

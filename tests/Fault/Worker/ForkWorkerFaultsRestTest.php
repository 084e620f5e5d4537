<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

use PHPUnit\Framework\Attributes\Group;
use Spindle\Worker\WorkerContext;

/** What goes through code that all workers share, and is tested with processes as well. */
#[Group('full')]
final class ForkWorkerFaultsRestTest extends WorkerPoolFaults
{
    use CancellationFaults;
    use Floods;
    use InputFaults;
    use ResultSizes;
    use StrangerFaults;
    use TransferFaults;

    protected function context(): WorkerContext
    {
        return WorkerContext::Fork;
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

use PHPUnit\Framework\Attributes\Group;
use Spindle\Worker\WorkerContext;

/** The rest of the contract: code that all kinds of workers share, which plain runs test with processes. */
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

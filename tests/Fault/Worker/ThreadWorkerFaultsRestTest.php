<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

use PHPUnit\Framework\Attributes\Group;
use Spindle\Tests\OnThreads;

/** The rest of the contract: code that all kinds of workers share, which plain runs test with processes. */
#[Group('full')]
final class ThreadWorkerFaultsRestTest extends WorkerPoolFaults
{
    use CancellationFaults;
    use Floods;
    use InputFaults;
    use ResultSizes;
    use OnThreads;
    use StrangerFaults;
    use TransferFaults;
}

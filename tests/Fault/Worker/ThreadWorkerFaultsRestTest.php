<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

use PHPUnit\Framework\Attributes\Group;
use Spindle\Tests\OnThreads;

/** Faults in code that all kinds of workers share. Quick test runs cover it with processes only. */
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

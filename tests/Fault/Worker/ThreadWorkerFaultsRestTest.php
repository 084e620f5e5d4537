<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

use PHPUnit\Framework\Attributes\Group;
use Spindle\Tests\OnThreads;

/** What goes through code that all workers share, and is tested with processes as well. */
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

<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

/** Tests faults in code that is independent of the kind of worker. */
abstract class ContextIndependentFaultsTestCase extends WorkerPoolFaults
{
    use CancellationFaults;
    use Floods;
    use InputFaults;
    use ResultSizes;
    use StrangerFaults;
    use TransferFaults;
}

<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

use Spindle\Tests\OnThreads;

final class ThreadWorkerStartsTest extends WorkerStartFaultsTestCase
{
    use OnThreads;
}

<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Lifecycle;

use Spindle\Remote\RemoteExecutor;
use Spindle\Tests\Remote\SharesAnAgent;

final class RemoteExecutorLifecycleTest extends ExecutorLifecycleContract
{
    use SharesAnAgent;

    protected function create(): RemoteExecutor
    {
        return $this->remote();
    }
}

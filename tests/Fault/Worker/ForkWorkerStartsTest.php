<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

use Spindle\Worker\WorkerContext;
use Spindle\Worker\WorkerStartException;

final class ForkWorkerStartsTest extends WorkerStartFaultsTestCase
{
    public function testAHostThatIsReadyWhileItIsEndedGetsNoWorker(): void
    {
        $waits = $this->path('waits');
        touch($waits);
        $wait = 'while (is_file($waits)) { usleep(1000); clearstatcache(); }';
        $pool = $this->pool(
            1,
            gracePeriod: 0.7,
            bootstrap: $this->file('bootstrap.php', <<<PHP
                <?php
                \$waits = '{$waits}';
                pcntl_signal(SIGTERM, SIG_IGN);
                {$wait}
                pcntl_signal(SIGTERM, SIG_DFL);
                PHP),
            startTimeout: 1.5,
        );
        $late = self::outcome($pool->submit(new Call('square', 1)));
        $next = $pool->submit(new Call('sleep', $this->path('begun'), 1.0));
        unlink($waits);

        self::assertInstanceOf(WorkerStartException::class, $late);
        self::assertSame('slept', self::outcome($next));
    }

    protected function context(): WorkerContext
    {
        return WorkerContext::Fork;
    }
}

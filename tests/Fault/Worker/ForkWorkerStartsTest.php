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

    public function testAnotherHostThatCannotStartFailsTheTasks(): void
    {
        $pool = $this->pool(
            1,
            gracePeriod: 0.2,
            bootstrap: $this->file('bootstrap.php', "<?php\nsleep(1000);\n"),
            startTimeout: 2.0,
        );
        $former = (string) getcwd();
        mkdir($this->path('directory'));
        chdir($this->path('directory'));
        try {
            $late = self::outcome($pool->submit(new Call('square', 1)));
            $next = $pool->submit(new Call('square', 2));
            rmdir($this->path('directory'));
            $outcome = self::outcome($next);
        } finally {
            chdir($former);
        }

        self::assertInstanceOf(WorkerStartException::class, $late);
        self::assertInstanceOf(WorkerStartException::class, $outcome);
        self::assertStringContainsString('working directory', $outcome->getMessage());
        $this->file('bootstrap.php', "<?php\n");
        self::assertUsable($pool);
    }

    protected function context(): WorkerContext
    {
        return WorkerContext::Fork;
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Tests\Remote;

use PHPUnit\Framework\Attributes\After;
use PHPUnit\Framework\Attributes\AfterClass;
use PHPUnit\Framework\Attributes\Before;
use PHPUnit\Framework\TestCase;
use Spindle\Remote\JobRetryPolicy;
use Spindle\Remote\RedisBroker;
use Spindle\Remote\RemoteExecutor;
use Spindle\Remote\RemoteOptions;
use Spindle\Tests\Host;
use Spindle\Tests\LeakCheck;
use Spindle\Tests\LeavesNothing;
use Spindle\Tests\OwnDirectory;
use Symfony\Component\Process\Process;

use function Amp\delay;
use function Amp\Future\await;

/**
 * Gives the tests of a class one queue and one agent with two workers, all of which run before the first test.
 *
 * If a test changes the agent or its workers, or leaves jobs in the queue, the agent is stopped, nothing of it may be
 * left, and the next test has a new agent and a new queue.
 *
 * The class also uses {@see LeavesNothing} and {@see OwnDirectory}.
 *
 * @phpstan-import-type Resources from LeakCheck
 * @phpstan-require-extends TestCase
 */
trait SharesAnAgent
{
    use UsesRedis;

    private static ?Process $sharedAgent = null;
    private static string $sharedQueue = '';

    /** @var Resources those before the shared agent was started */
    private static array $beforeAgent = LeakCheck::NO_RESOURCES;

    #[AfterClass]
    public static function stopSharedAgent(): void
    {
        $agent = self::$sharedAgent;
        self::$sharedAgent = null;
        if ($agent === null) {
            return;
        }
        if ($agent->isRunning()) {
            $agent->signal(\SIGTERM);
        }
        for ($end = hrtime(true) + 5_000_000_000; $agent->isRunning() && hrtime(true) < $end;) {
            delay(0.005); // requests to the engine are answered during this time
        }
        $agent->stop(0);
    }

    /** Comes before the hook that remembers which processes and files exist. */
    #[Before(20)]
    protected function startSharedAgent(): void
    {
        if ($this->needsNewAgent()) {
            self::stopSharedAgent();
        }
        if (self::$sharedAgent?->isRunning() === true) {
            return;
        }
        gc_collect_cycles();
        self::$beforeAgent = $this->surroundings();
        self::$sharedQueue = self::newQueue();
        $directory = $this->path('workers');
        mkdir($directory);
        $executor = $this->remote();
        $wait = static function () use ($directory): void {
            touch("{$directory}/" . getmypid());
            while (\count((array) glob("{$directory}/*")) < 2) {
                usleep(1000);
            }
        };
        $tasks = [$executor->submit($wait), $executor->submit($wait)];
        $arguments = [Redis::shared()->url(), self::$sharedQueue, 2];
        self::$sharedAgent = Host::start(AgentProgram::class . '::run', $arguments);
        await($tasks);
    }

    /** Whether the test needs an agent that has run no tasks, which claims few at once. */
    protected function needsNewAgent(): bool
    {
        return false;
    }

    /** Returns a new executor for the queue of the shared agent. */
    protected function remote(
        JobRetryPolicy $retries = new JobRetryPolicy(),
        RemoteOptions $options = new RemoteOptions(),
    ): RemoteExecutor {
        return new RemoteExecutor(
            new RedisBroker(Redis::shared()->url()),
            self::$sharedQueue,
            self::keys(),
            $retries,
            $options,
        );
    }

    /** Runs just before the hook that checks for leftovers. */
    #[After(-9)]
    protected function leaveSharedAgentAsItWas(): void
    {
        if ($this->status()->isSuccess() && $this->isAgentAsBefore()) {
            return;
        }
        self::stopSharedAgent();
        $this->before = self::$beforeAgent;
    }

    private function isAgentAsBefore(): bool
    {
        for ($end = hrtime(true) + 1_000_000_000; !self::isQueueEmpty(); delay(0.005)) {
            if (hrtime(true) > $end) {
                return false;
            }
        }
        $kinds = ['children' => 0, 'files' => 0, 'memory' => 0];
        $now = array_intersect_key($this->surroundings(), $kinds);

        return self::$sharedAgent?->isRunning() === true && $now === array_intersect_key($this->before, $kinds);
    }

    private static function isQueueEmpty(): bool
    {
        $statistics = (new RedisBroker(Redis::shared()->url()))->statistics(self::$sharedQueue);

        return $statistics['waiting'] + $statistics['running'] + $statistics['delayed'] + $statistics['blocked'] === 0;
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Command;

use PHPUnit\Framework\Attributes\After;
use PHPUnit\Framework\Attributes\AfterClass;
use PHPUnit\Framework\Attributes\Before;
use Revolt\EventLoop;
use Spindle\Command\Command;
use Spindle\Command\CommandPool;
use Spindle\Command\CommandResult;

/**
 * Shares one pool among the tests of a class that run single commands, to save the time for starting launchers.
 *
 * Tests of a pool's start, end or options have their own pool.
 *
 * @phpstan-require-extends CommandPoolTestCase
 */
trait SharesAPool
{
    private static ?CommandPool $shared = null;

    /** Number of watchers in the loop while the pool is idle. */
    private static int $watchers = 0;

    /** Runs before the checks of LeavesNothing. */
    #[Before(20)]
    protected function startSharedPool(): void
    {
        if (self::$shared === null) {
            self::$shared = $this->pool(1);
            self::$shared->execute(Command::of('true'));
        }
        self::$watchers = \count(EventLoop::getIdentifiers());
    }

    /** Waits for input that a command left unread, by running another command after it. */
    #[After(1)]
    protected function emptySharedPool(): void
    {
        if (\count(EventLoop::getIdentifiers()) > self::$watchers) {
            self::$shared?->execute(Command::of('true'));
        }
    }

    #[AfterClass]
    public static function closeSharedPool(): void
    {
        [$pool, self::$shared] = [self::$shared, null];
        $pool?->close();
    }

    protected function execute(Command $command): CommandResult
    {
        return (self::$shared ?? $this->pool(1))->execute($command);
    }
}

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
 * Shares one pool among the tests of a class that run single commands: starting launchers took most of their time.
 *
 * Tests of what a pool does from its start to its end, or of its options, have a pool of their own.
 *
 * @phpstan-require-extends CommandPoolTestCase
 */
trait SharesAPool
{
    private static ?CommandPool $shared = null;

    /** How many watchers the loop has while the pool is idle. */
    private static int $watchers = 0;

    /** Before LeavesNothing looks around. */
    #[Before(20)]
    protected function startSharedPool(): void
    {
        if (self::$shared === null) {
            self::$shared = $this->pool(1);
            self::$shared->execute(Command::of('true'));
        }
        self::$watchers = \count(EventLoop::getIdentifiers());
    }

    /** Input that a command left unread is still on its way to the launcher. The next command comes after it. */
    #[After]
    protected function emptySharedPool(): void
    {
        if (\count(EventLoop::getIdentifiers()) > self::$watchers) {
            self::$shared?->execute(Command::of('true'));
        }
    }

    #[AfterClass]
    public static function closeSharedPool(): void
    {
        self::$shared?->close();
        self::$shared = null;
    }

    protected function execute(Command $command): CommandResult
    {
        return (self::$shared ?? $this->pool(1))->execute($command);
    }
}

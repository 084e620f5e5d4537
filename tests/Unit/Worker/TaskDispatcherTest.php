<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Worker;

use Amp\DeferredFuture;
use PHPUnit\Framework\TestCase;
use Revolt\EventLoop;
use Spindle\Worker\Internal\Context;
use Spindle\Worker\Internal\Submission;
use Spindle\Worker\Internal\TaskDispatcher;
use Spindle\Worker\Internal\WorkerLink;
use Spindle\Worker\Internal\WorkerProtocol;
use Spindle\Worker\Internal\WorkerSettings;
use Spindle\Worker\TaskRetryPolicy;
use Spindle\Worker\WorkerPool;
use Spindle\Worker\WorkerPoolOptions;

final class TaskDispatcherTest extends TestCase
{
    public function testTheEndOfAnUnusedPoolLeavesNoTimer(): void
    {
        $timers = EventLoop::getIdentifiers();
        $pool = new WorkerPool(1);
        $pool->close();

        self::assertSame($timers, EventLoop::getIdentifiers());
    }

    public function testASubmissionThatThrowsLeavesNoTask(): void
    {
        $context = new class implements Context {
            public function start(int $id, #[\SensitiveParameter] array $settings): void
            {
                throw new \DomainException('an error handler or a signal handler threw');
            }

            public function end(int $id): void {}

            public function onDisconnected(int $id): void {}

            public function onConnected(WorkerLink $link, int $type, string $data): bool
            {
                return false;
            }

            public function drain(): void {}

            public function close(): void {}
        };
        $options = new WorkerPoolOptions();
        $settings = new WorkerSettings($options);
        $create = static fn(): Context => $context;
        $dispatcher = new TaskDispatcher(1, new TaskRetryPolicy(0), $options, $settings, $create);
        /** @var DeferredFuture<mixed> $deferred */
        $deferred = new DeferredFuture();
        $deferred->getFuture()->ignore();
        $thrown = null;
        try {
            $dispatcher->submit(new Submission('time', WorkerProtocol::STRING, $deferred), null);
        } catch (\DomainException $thrown) {
        }
        $waiting = $dispatcher->statistics()['waiting'];
        $dispatcher->kill();

        self::assertNotNull($thrown);
        self::assertSame(0, $waiting);
        self::assertTrue($deferred->isComplete());
    }
}

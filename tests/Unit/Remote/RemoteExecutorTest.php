<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Remote;

use Amp\DeferredFuture;
use PHPUnit\Framework\TestCase;
use Spindle\Remote\Broker;
use Spindle\Remote\Job;
use Spindle\Remote\RemoteExecutor;
use Spindle\Remote\SigningKeys;
use Spindle\Remote\SubmitResult;
use Spindle\Tests\Async;
use Spindle\Tests\Remote\AgentProgram;
use Spindle\Worker\ExecutorClosedException;

use function Amp\delay;

final class RemoteExecutorTest extends TestCase
{
    public function testAKilledExecutorWithdrawsAJobWhenTheEngineHasIt(): void
    {
        $calls = [];
        /** @var DeferredFuture<null> $answered */
        $answered = new DeferredFuture();
        $broker = self::createStub(Broker::class);
        $broker->method('openMailbox')->willReturn(static function (): void {});
        $broker->method('submit')->willReturnCallback(
            /** @param list<Job> $jobs */
            static function (string $queue, array $jobs) use (&$calls, $answered): SubmitResult {
                $calls[] = 'submission';
                $answered->getFuture()->await();
                $calls[] = 'answer';

                return new SubmitResult(\count($jobs));
            },
        );
        $broker->method('withdraw')->willReturnCallback(
            /** @param list<string> $ids */
            static function (string $queue, array $ids) use (&$calls): array {
                $calls[] = \count($ids) . ' withdrawn';

                return $ids;
            },
        );
        $executor = new RemoteExecutor($broker, 'queue', new SigningKeys([AgentProgram::KEY]));
        $task = Async::run(static fn(): mixed => $executor->submit('time')->await());
        delay(0.001);
        $killing = Async::run($executor->kill(...));
        delay(0.001);
        $isEarly = \in_array('1 withdrawn', $calls, true);
        $answered->complete();
        $killing->await();

        self::assertFalse($isEarly);
        self::assertSame(['submission', 'answer', '1 withdrawn'], $calls);
        $this->expectException(ExecutorClosedException::class);
        $task->await();
    }
}

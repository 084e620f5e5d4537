<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Remote;

use Spindle\Tests\Conformance\Worker\Contract;
use Spindle\Tests\Conformance\Worker\Task\Number;
use Spindle\Tests\Conformance\Worker\Task\Suit;
use Spindle\Tests\Remote\Redis;
use Spindle\Worker\TaskContext;

/** Guarantees of executors that depend on the connection to an agent. RemoteItemsTest covers generators. */
final class RemoteExecutorTest extends RemoteExecutorTestCase
{
    use Contract\HasContext;
    use Contract\IsCancelled;
    use Contract\IsAbandoned;
    use Contract\MapsInput;
    use Contract\ReportsFailures;

    public function testValuesOfAllKindsTravelBothWays(): void
    {
        $values = [null, false, \PHP_INT_MIN, -0.0, \INF, "\0\r\n\xFF", [[], ['a' => 1]], Suit::Hearts, new Number(3)];
        $executor = $this->executor();

        self::assertEquals($values, $executor->submit(static fn(): array => $values)->await());
        $mapped = $executor->map($values, static fn(mixed $value): mixed => $value);
        self::assertEquals($values, iterator_to_array($mapped));
    }

    public function testTheFirstReportsOfAnAgentComeBeforeTheResult(): void
    {
        self::stopSharedAgent();
        Redis::shared()->command('SCRIPT', 'FLUSH');
        $this->startSharedAgent();
        $reports = [];
        $executor = $this->executor(static function (mixed $report) use (&$reports): void {
            $reports[] = $report;
        });
        // now the engine has loaded the scripts that settle jobs
        self::assertSame(1, $executor->submit(static fn(): int => 1)->await());

        $executor->submit(static fn() => TaskContext::current()->report('first'))->await();
        self::assertSame(['first'], $reports);
    }

    /** A pool that has measured short tasks may give one worker several of these, which wait for each other. */
    protected function needsNewAgent(): bool
    {
        return \in_array($this->name(), [
            'testOneCancelledTaskLeavesTheOthers',
            'testOutcomesInOrderOfCompletionDoNotWaitForASlowTask',
        ], true);
    }
}

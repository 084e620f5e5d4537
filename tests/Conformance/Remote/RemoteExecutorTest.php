<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Remote;

use Spindle\Tests\Conformance\Worker\Contract;
use Spindle\Tests\Conformance\Worker\Task\Number;
use Spindle\Tests\Conformance\Worker\Task\Suit;
use Spindle\Tests\Remote\Redis;
use Spindle\Worker\TaskContext;

/** The promises of executors that the way to an agent can break; RemoteItemsTest has those about generators. */
final class RemoteExecutorTest extends RemoteExecutorTestCase
{
    use Contract\HasContext;
    use Contract\IsCancelled;
    use Contract\IsLeft;
    use Contract\MapsInput;
    use Contract\TellsFailures;

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
        self::assertSame(1, $executor->submit(static fn(): int => 1)->await()); // now the engine knows how jobs end

        $executor->submit(static fn() => TaskContext::current()->report('first'))->await();
        self::assertSame(['first'], $reports);
    }

    /** A pool that knows its tasks to be short may give one worker several of these, which wait for each other. */
    protected function needsNewAgent(): bool
    {
        return $this->name() === 'testOneCancelledTaskLeavesTheOthers';
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker\Contract;

use Spindle\Tests\Conformance\Worker\ExecutorTestCase;
use Spindle\Tests\Conformance\Worker\Task\Number;

/**
 * Tests loops that are left before their end.
 *
 * @phpstan-require-extends ExecutorTestCase
 */
trait IsAbandoned
{
    public function testTasksThatHaveNotStartedWhenALoopIsLeftNeverStart(): void
    {
        $executor = $this->executor();
        foreach (['map', 'mapUnordered'] as $verb) {
            $gate = $this->gate($verb);
            foreach (self::loop($executor, $verb, array_map(strval(...), range(1, 2000)), $gate->say(...)) as $_) {
                break;
            }
            $this->awaitWhatRuns($executor, "{$verb} is left"); // a worker may have received a task just now
            $started = $gate->names();
            $this->awaitWhatRuns($executor, "{$verb} is over");
            self::assertUsable($executor);

            self::assertLessThan(2000, \count($started));
            self::assertSame($started, $gate->names());
        }
    }

    public function testALoopThatIsNeverBegunStartsNothing(): void
    {
        $gate = $this->gate();
        $executor = $this->executor();
        $results = $executor->map(['a', 'b'], [$gate, 'say']);
        self::assertUsable($executor);
        unset($results);
        self::assertUsable($executor);

        self::assertSame([], $gate->names());
    }

    public function testAnExceptionOfTheBodyLeavesTheLoop(): void
    {
        $executor = $this->executor();
        $thrown = self::thrown(\DomainException::class, static function () use ($executor): void {
            foreach ($executor->map(range(1, 100), Number::double(...)) as $value) {
                throw new \DomainException("at {$value}");
            }
        });

        self::assertSame('at 2', $thrown->getMessage());
        self::assertUsable($executor);
    }

    public function testALoopThatIsLeftAndHeldCanGoOn(): void
    {
        $executor = $this->executor();
        $results = $executor->map(range(1, 100), Number::double(...));
        $sum = 0;
        foreach ($results as $value) {
            $sum += $value;
            if ($value === 20) {
                break;
            }
        }
        self::assertUsable($executor);
        for ($results->next(); $results->valid(); $results->next()) {
            $sum += $results->current();
        }

        self::assertSame(10_100, $sum);
    }

    public function testManyAbandonedLoopsLeaveTheExecutorUsable(): void
    {
        $executor = $this->executor();
        for ($i = 0; $i < 50; ++$i) {
            foreach ($executor->mapUnordered(range(1, 200), Number::double(...)) as $_) {
                break;
            }
        }

        self::assertUsable($executor);
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Command\Contract;

use Amp\DeferredCancellation;
use Spindle\Command\Command;
use Spindle\Command\HaltPolicy;
use Spindle\Tests\Conformance\Command\CommandPoolTestCase;

use function Amp\delay;

/**
 * Runs that end before their input ends.
 *
 * @phpstan-require-extends CommandPoolTestCase
 */
trait Halts
{
    public function testSoonLetsRunningCommandsFinishAndStartsNoOthers(): void
    {
        $run = $this->pool(2, halt: HaltPolicy::soonAfterFailures(1))->run($this->endless([
            0 => Command::shell("until test -e {$this->path('failed')}; do sleep 0.02; done; sleep 0.1; echo finished"),
            1 => Command::of('false'),
        ]));
        $results = [];
        foreach ($run as $key => $result) {
            $results[$key] = $result;
            touch($this->path('failed'));
        }

        self::assertSame([1, 0], array_keys($results));
        self::assertSame("finished\n", $results[0]->stdout());
        self::assertSame(
            [1, 1, true],
            [$run->getReturn()->succeeded, $run->getReturn()->failed, $run->getReturn()->halted],
        );
        self::assertFileDoesNotExist($this->path('started'));
    }

    public function testNowEndsRunningCommands(): void
    {
        $start = hrtime(true);
        $run = $this->pool(2, halt: HaltPolicy::nowAfterFailures(1))->run($this->endless([
            0 => Command::of('sleep', '20'),
            1 => Command::of('false'),
        ]));
        $results = iterator_to_array($run);

        self::assertSame([1, 0], array_keys($results));
        self::assertTrue($results[0]->cancelled);
        self::assertTrue($run->getReturn()->halted);
        self::assertLessThan(10.0, (hrtime(true) - $start) / 1e9);
        self::assertFileDoesNotExist($this->path('started'));
    }

    public function testSuccessesHaltToo(): void
    {
        $run = $this->pool(3, halt: HaltPolicy::nowAfterSuccesses(1))->run($this->endless([
            Command::of('sleep', '20'),
            Command::of('sleep', '20'),
            Command::of('true'),
        ]));
        $results = iterator_to_array($run);

        self::assertSame([2, true, true], [array_key_first($results), $results[0]->cancelled, $results[1]->cancelled]);
        self::assertSame(1, $run->getReturn()->succeeded);
    }

    public function testAShareOfFailuresHalts(): void
    {
        $input = static function (): \Generator {
            for ($i = 0; ; ++$i) {
                yield $i => Command::of($i % 2 === 0 ? 'true' : 'false');
            }
        };
        $run = $this->pool(1, halt: HaltPolicy::soonAfterFailureShare(0.5))->run($input());

        self::assertCount(6, iterator_to_array($run), 'three of six');
    }

    public function testARunThatReachesItsEndFirstDidNotHalt(): void
    {
        $run = $this->pool(2, halt: HaltPolicy::soonAfterFailures(2))->run([Command::of('false'), Command::of('true')]);

        self::assertCount(2, iterator_to_array($run));
        self::assertFalse($run->getReturn()->halted);
    }

    public function testAHaltDoesNotWaitForAnInputThatSuspends(): void
    {
        $end = new DeferredCancellation();
        $input = static function () use ($end): \Generator {
            yield Command::of('false');
            delay(20, cancellation: $end->getCancellation());
        };
        $start = hrtime(true);
        self::assertCount(1, iterator_to_array($this->pool(2, halt: HaltPolicy::soonAfterFailures(1))->run($input())));
        self::assertLessThan(5.0, (hrtime(true) - $start) / 1e9);
        $end->cancel();
    }

    /**
     * @param list<Command> $first
     *
     * @return \Generator<int, Command>
     */
    private function endless(array $first): \Generator
    {
        yield from $first;
        while (true) {
            yield Command::of('touch', $this->path('started'));
        }
    }
}

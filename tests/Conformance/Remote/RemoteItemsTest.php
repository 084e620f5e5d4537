<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Remote;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\Group;
use Revolt\EventLoop;
use Spindle\Tests\Conformance\Worker\Contract;
use Spindle\Tests\Eventually;

/** Generators, and how far input is pulled and items are made ahead. Remote executors have their own windows. */
final class RemoteItemsTest extends RemoteExecutorTestCase
{
    use Contract\PullsLazily {
        testAnEndlessInputIsPulledABoundedNumberAhead as private endlessInput;
        testLargeResultsAreKeptFewAhead as private largeResults;
    }
    use Contract\StreamsItems {
        testTenThousandItemsComeInTheirOrder as private tenThousandItems;
    }

    /** Maximum number of tasks that were pulled from the input and that the caller's loop has not taken. */
    private const WINDOW = 4096;

    /** @param 'map'|'mapUnordered' $verb */
    #[DataProvider('verbs')]
    public function testAnInputIsPulledNoFurtherAheadThanTheWindow(string $verb): void
    {
        $pulled = 0;
        $input = static function () use (&$pulled): \Generator {
            while (true) {
                if ($pulled % 500 === 0) {
                    usleep(2000); // the client sends an incomplete batch, so that the window is no multiple of batches
                }
                yield ++$pulled;
            }
        };
        $executor = $this->executor();
        foreach (self::loop($executor, $verb, $input(), abs(...)) as $_) {
            do { // until no more is pulled while a later task goes through the same queue
                $before = $pulled;
                $executor->submit(static fn(): int => 0)->await();
            } while ($pulled !== $before);
            break;
        }

        self::assertGreaterThan(512, $pulled);
        self::assertLessThanOrEqual(1 + self::WINDOW, $pulled);
    }

    /** @return iterable<array{'map'|'mapUnordered'}> */
    public static function verbs(): iterable
    {
        yield ['map'];
        yield ['mapUnordered'];
    }

    #[Group('full')]
    public function testAnEndlessInputIsPulledABoundedNumberAhead(): void
    {
        $this->endlessInput();
    }

    #[Group('full')]
    public function testLargeResultsAreKeptFewAhead(): void
    {
        $this->largeResults();
    }

    #[Group('full')]
    public function testTenThousandItemsComeInTheirOrder(): void
    {
        $this->tenThousandItems();
    }

    /** The end of the task in the agent is not visible here. */
    public function testAGeneratorEndsWhenItsFutureIsReleased(): void
    {
        $gate = $this->gate();
        $executor = $this->executor();
        $executor->submit(self::endless($gate));
        EventLoop::run(); // runs until the outcome has arrived

        Eventually::holds(
            static fn(): bool => \in_array($gate->names(), [[], ['begun', 'ended']], true),
            'it has ended',
        );
        self::assertUsable($executor);
    }

    /** The generator ends at its next item; its worker continues with other tasks. */
    public function testAGeneratorThatIsLeftCostsNoWorker(): void
    {
        $executor = $this->executor();
        $workers = [];
        for ($i = 0; $i < 10; ++$i) {
            $workers[] = $executor->submit(static fn(): int => (int) getmypid())->await();
            $executor->submit(static function (): \Generator {
                while (true) {
                    yield;
                }
            });
            EventLoop::run();
        }

        self::assertLessThanOrEqual(2, \count(array_unique($workers)));
    }

    /**
     * An agent that knows its tasks to be short hands many of them to its pool at once, which may begin a later
     * generator before an earlier one.
     */
    protected function needsNewAgent(): bool
    {
        return $this->name() === 'testAGeneratorThatALoopDropsDelaysNothing';
    }
}

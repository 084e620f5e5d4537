<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Command\Contract;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use Amp\TimeoutCancellation;
use PHPUnit\Framework\Attributes\Group;
use Spindle\Command\Command;
use Spindle\Tests\Conformance\Command\CommandPoolTestCase;
use Spindle\Tests\Drained;
use Spindle\Tests\Eventually;
use Spindle\Tests\Text;

use function Amp\delay;

/**
 * When the input is pulled.
 *
 * @phpstan-require-extends CommandPoolTestCase
 */
trait RunsLazily
{
    public function testNoCommandIsPulledBeforeTheFirstResultIsRequested(): void
    {
        $pulled = 0;
        $input = static function () use (&$pulled): \Generator {
            ++$pulled;
            yield Command::of('true');
        };
        $run = $this->pool(1)->run($input());

        self::assertSame(0, $pulled);
        self::assertCount(1, iterator_to_array($run));
    }

    public function testResultsThatAreNeverReadAreReported(): void
    {
        $pool = $this->pool(1);
        $lines = $this->errorLogOf(static function () use ($pool): void {
            $pool->run([Command::of('true')]);
            $pool->runInOrder([Command::of('true')]);
            $pool->run([Command::of('true')])->current();
        });

        self::assertCount(2, $lines);
        foreach (['run', 'runInOrder'] as $i => $verb) {
            self::assertStringContainsString(" Spindle: CommandPool::{$verb}() in " . __FILE__ . ':', $lines[$i]);
            self::assertStringEndsWith(
                ' ran no command, because its results were never read. Loop over them',
                $lines[$i],
            );
        }
    }

    public function testAnEndlessInputIsPulledNoFurtherAheadThanTold(): void
    {
        $pulled = 0;
        $input = static function () use (&$pulled): \Generator {
            while (true) {
                yield ++$pulled => Command::of('true');
            }
        };
        foreach ([[3, 0], [2, 5], [4, 64]] as [$concurrency, $lookahead]) {
            $pulled = $taken = 0;
            foreach ($this->pool($concurrency, lookahead: $lookahead)->run($input()) as $_) {
                ++$taken;
                delay(0.001);
                self::assertLessThanOrEqual($taken + $concurrency + $lookahead, $pulled);
                if ($taken === 40) {
                    break;
                }
            }
        }
    }

    #[Group('quiet')]
    public function testLargeCommandsArePulledNoFurtherAheadThanABoundOfBytes(): void
    {
        $pulled = 0;
        $large = str_repeat('x', 4 << 20);
        $input = static function () use (&$pulled, $large): \Generator {
            for (; $pulled < 40;) {
                ++$pulled;
                yield Command::of('wc', '-c')->withInput($large . $pulled);
            }
        };
        $taken = 0;
        foreach ($this->pool(2, lookahead: 256)->run($input()) as $result) {
            self::assertLessThanOrEqual($taken + 2 + 4, $pulled);
            self::assertStringStartsWith('419430', $result->stdout());
            ++$taken;
        }

        self::assertSame(40, $taken);
    }

    public function testAnInputThatBlocksDoesNotDelayResults(): void
    {
        $start = hrtime(true);
        $input = static function (): \Generator {
            for ($i = 0; $i < 20; ++$i) {
                usleep(30_000);
                yield $i => Command::of('true');
            }
        };
        $first = null;
        foreach ($this->pool(2)->run($input()) as $_) {
            $first ??= (hrtime(true) - $start) / 1e9;
        }

        self::assertLessThan(0.4, $first, 'the whole input takes 0.6 s');
    }

    #[Group('quiet')]
    public function testAnInputThatSuspendsDoesNotDelayResults(): void
    {
        $start = hrtime(true);
        $input = static function (): \Generator {
            yield 0 => Command::of('true');
            delay(0.6);
            yield 1 => Command::of('true');
        };
        $times = [];
        foreach ($this->pool(2)->run($input()) as $key => $_) {
            $times[$key] = (hrtime(true) - $start) / 1e9;
        }

        self::assertLessThan(0.5, $times[0]);
        self::assertGreaterThanOrEqual(0.59, $times[1]);
    }

    public function testACancelledRunDoesNotWaitForItsInput(): void
    {
        $end = new DeferredCancellation();
        $input = static function () use ($end): \Generator {
            yield Command::of('true');
            delay(20, cancellation: $end->getCancellation());
        };
        $start = hrtime(true);
        try {
            foreach ($this->pool(2)->run($input(), new TimeoutCancellation(0.2)) as $_) {
                continue;
            }
            self::fail('Not cancelled');
        } catch (CancelledException) {
            self::assertLessThan(5.0, (hrtime(true) - $start) / 1e9);
        } finally {
            $end->cancel();
        }
    }

    public function testASlowLoopBodyLeavesThePoolBusy(): void
    {
        $pool = $this->pool(2);
        $log = $this->path('log');
        $command = Command::shell("echo x >> {$log}; sleep 0.05");
        foreach ($pool->run(array_fill(0, 20, $command)) as $_) {
            // While the loop body blocks, commands that were sent before it continue.
            Eventually::holdsByItself(static fn(): bool => \count(Text::lines($log)) === 20, 'all were started');
            break;
        }
    }

    public function testSubmittedCommandsHaveResultsWhenTheInputThrows(): void
    {
        $input = static function (): \Generator {
            yield 'a' => Command::shell('sleep 0.2; echo a');
            yield 'b' => Command::of('echo', 'b');

            throw new \DomainException('torn');
        };
        $run = new Drained($this->pool(1)->run($input()));

        self::assertSame(['a', 'b'], $run->keys);
        self::assertSame(['a', 'b'], self::outputs($run->results));
        self::assertInstanceOf(\DomainException::class, $run->thrown);
    }

    public function testSomethingElseThanACommandIsRefusedAfterTheResultsBeforeIt(): void
    {
        // @phpstan-ignore argument.type (which is the point)
        $run = new Drained($this->pool(1)->run(['a' => Command::of('echo', 'a'), 'b' => 'echo b']));

        self::assertSame(['a'], self::outputs($run->results));
        self::assertInstanceOf(\ValueError::class, $run->thrown);
        self::assertSame(
            'The input of a pool must yield Spindle\Command\Command, not string (key \'b\');'
                . ' write Command::of($program, ...$arguments), or Command::shell($line) for a line of a shell',
            $run->thrown->getMessage(),
        );
    }

    public function testAnEmptyInputHasNoResults(): void
    {
        $run = $this->pool(1)->run([]);

        self::assertSame([], iterator_to_array($run));
        self::assertSame(0, $run->getReturn()->succeeded);
    }

    public function testAnIteratorAndAnAggregateAreInputsToo(): void
    {
        $commands = ['a' => Command::of('echo', 'a'), 'b' => Command::of('echo', 'b')];
        foreach ([new \ArrayIterator($commands), new \ArrayObject($commands)] as $input) {
            self::assertSame(['a', 'b'], self::outputs($this->pool(1)->run($input)));
        }
    }
}

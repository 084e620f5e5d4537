<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Command\Contract;

use Revolt\EventLoop;
use Spindle\Command\Command;
use Spindle\Command\CommandPool;
use Spindle\Tests\Async;
use Spindle\Tests\Conformance\Command\CommandPoolTestCase;

use function Amp\Future\await;

/**
 * Several fibers, pools and runs at the same time.
 *
 * @phpstan-require-extends CommandPoolTestCase
 */
trait RunsTogether
{
    public function testTwoPoolsRunInTwoFibers(): void
    {
        $run = fn(string $name): \Closure => fn(): array => self::outputs(
            $this->pool(2)->run(array_fill(0, 30, Command::shell("sleep 0.01; echo {$name}"))),
        );

        self::assertEquals(
            [array_fill(0, 30, 'a'), array_fill(0, 30, 'b')],
            await([Async::run($run('a')), Async::run($run('b'))]),
        );
    }

    public function testAFiberThatWaitsForAPoolIsNotGarbage(): void
    {
        $late = Command::of('sleep', '0.1');

        self::assertSame(0, Async::alone(fn(): ?int => $this->pool(1)->execute($late)->exitCode));
        self::assertSame(['', ''], Async::alone(fn(): array => self::outputs($this->pool(1)->run([$late, $late]))));
    }

    public function testTwoRunsShareOnePoolInTwoFibers(): void
    {
        $pool = $this->pool(2);
        $log = $this->path('log');
        $run = static fn(string $name): \Closure => static fn(): array => self::outputs($pool->run(
            array_fill(0, 30, Command::shell("echo {$name} >> {$log}; echo {$name}")),
        ));

        self::assertEquals(
            [array_fill(0, 30, 'a'), array_fill(0, 30, 'b')],
            await([Async::run($run('a')), Async::run($run('b'))]),
        );
        $order = str_replace("\n", '', (string) file_get_contents($log));
        self::assertStringContainsString('b', substr($order, 0, 20), 'the second is not kept waiting for the first');
    }

    public function testOneExecutionIsNotStarvedByABusyRun(): void
    {
        $pool = $this->pool(2);
        $ended = 0;
        $run = Async::run(static function () use ($pool, &$ended): void {
            foreach ($pool->run(array_fill(0, 60, Command::of('sleep', '0.02'))) as $_) {
                ++$ended;
            }
        });
        $pool->execute(Command::of('true'));
        $pool->execute(Command::of('true'));

        self::assertLessThan(20, $ended);
        $run->await();
        self::assertSame(60, $ended);
    }

    public function testNoMoreRunAtOnceThanTold(): void
    {
        $pool = $this->pool(3);
        $active = $this->path('active');
        mkdir($active);
        $command = Command::shell("touch {$active}/\$\$; ls {$active} | wc -l; sleep 0.02; rm {$active}/\$\$");
        $most = max([0, ...array_map(intval(...), self::outputs($pool->run(array_fill(0, 30, $command))))]);

        self::assertSame(3, $most);
    }

    public function testTheLoopGoesOnWhileCommandsRun(): void
    {
        $ticks = 0;
        $timer = EventLoop::repeat(0.01, static function () use (&$ticks): void {
            ++$ticks;
        });
        $this->execute(Command::of('sleep', '0.3'));
        EventLoop::cancel($timer);

        self::assertGreaterThan(10, $ticks);
    }

    public function testAPoolWorksTheSameInMainAndInAFiber(): void
    {
        $work = fn(CommandPool $pool): array => [
            $pool->execute(Command::of('echo', '1'))->stdout(),
            ...self::outputs($pool->runInOrder([Command::of('echo', '2'), Command::of('echo', '3')])),
        ];
        $pool = $this->pool(2);

        self::assertSame(["1\n", '2', '3'], $work($pool));
        self::assertSame(["1\n", '2', '3'], Async::run(static fn(): array => $work($pool))->await());
    }

    public function testAnIdlePoolDoesNotKeepTheLoopFromEnding(): void
    {
        $pool = $this->pool(2);
        EventLoop::queue(static fn() => $pool->execute(Command::of('true')));
        EventLoop::run();

        self::assertTrue($pool->execute(Command::of('true'))->succeeded());
    }

    public function testAResultLoopMayRunFurtherCommandsOnItsPool(): void
    {
        $pool = $this->pool(1);
        $outputs = [];
        foreach ($pool->run([Command::of('echo', 'a'), Command::of('echo', 'b')]) as $result) {
            $outputs[] = $pool->execute(Command::of('echo', trim($result->stdout()) . '!'))->stdout();
        }

        self::assertSame(["a!\n", "b!\n"], $outputs);
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Command\Contract;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use Spindle\Command\Command;
use Spindle\Tests\Async;
use Spindle\Tests\Conformance\Command\CommandPoolTestCase;
use Spindle\Tests\Eventually;
use Spindle\Tests\Processes;
use Spindle\Tests\Text;

/**
 * Ending a run, a pool or its process ends all commands that it has started.
 *
 * @phpstan-require-extends CommandPoolTestCase
 */
trait CancelsCommands
{
    public function testACommandThatIsItselfAPoolEndsWithAllItsCommands(): void
    {
        $host = $this->file('host.php', '<?php require $argv[1]; use Spindle\Command\{Command, CommandPool};
            $command = Command::shell("echo \$\$ >> $argv[2]; sleep 100");
            foreach ((new CommandPool(3))->run(array_fill(0, 3, $command)) as $_) {}');
        $command = Command::of(\PHP_BINARY, $host, \dirname(__DIR__, 4) . '/vendor/autoload.php', $this->path('pids'));
        $cancellation = new DeferredCancellation();
        $pool = $this->pool(1, gracePeriod: 0.5);
        $running = Async::run(static fn() => $pool->execute($command, $cancellation->getCancellation()));
        $pids = fn(): array => Text::numbersIn($this->path('pids'));
        Eventually::holds(static fn(): bool => \count($pids()) === 3, 'its commands run');
        $cancellation->cancel();
        try {
            $running->await();
            self::fail('Not cancelled');
        } catch (CancelledException) {
            self::assertCount(3, $pids());
            self::assertSame([], array_filter($pids(), Processes::isAlive(...)));
        }
    }

    public function testLeavingTheLoopEndsRunningCommandsSoonAfter(): void
    {
        $pool = $this->pool(4);
        $pids = $this->path('pids');
        foreach ($pool->run(array_fill(
            0,
            8,
            Command::shell(
                "sleep 100 & echo \$\$ \$! >> {$pids};"
                . " if mkdir {$this->path('first')} 2>/dev/null; then exit; fi; wait",
            ),
        )) as $_) {
            break;
        }
        $running = static fn(): array => array_filter(Text::numbersIn($pids), Processes::isAlive(...));
        // One descendant may be left: that of a command that has ended lives as long as the pool.
        Eventually::holds(static fn(): bool => \count($running()) <= 1, 'what ran has ended', 3.0);
        self::assertLessThanOrEqual(10, 2 * \count(Text::lines($pids)), 'nothing more was started');
    }

    public function testCancellingARunEndsItsCommandsAndYieldsCancelledResults(): void
    {
        $cancellation = new DeferredCancellation();
        $pids = [];
        $started = 0;
        $command = Command::shell('echo $$; sleep 100')->withStdout(
            static function (string $pid) use (&$pids, &$started, $cancellation): void {
                $pids[] = (int) $pid;
                if (++$started === 3) {
                    $cancellation->cancel();
                }
            },
        );
        $attempts = [];
        $thrown = null;
        try {
            foreach ($this->pool(3)->run(
                array_fill(0, 5, $command),
                $cancellation->getCancellation(),
            ) as $key => $result) {
                self::assertTrue($result->cancelled);
                $attempts[$key] = $result->attempts;
            }
        } catch (CancelledException $thrown) {
            self::assertSame([], array_filter($pids, Processes::isAlive(...)));
        }
        ksort($attempts);

        self::assertSame([1, 1, 1, 0, 0], $attempts);
        self::assertInstanceOf(CancelledException::class, $thrown);
    }
}

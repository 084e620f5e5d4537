<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Command;

use PHPUnit\Framework\Attributes\DataProviderExternal;
use Spindle\Command\Command;
use Spindle\Command\CommandPool;
use Spindle\Command\CommandPoolOptions;
use Spindle\Command\StartMethod;
use Spindle\Tests\Async;
use Spindle\Tests\Eventually;
use Spindle\Tests\LauncherPhp;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\TidyTestCase;

/** With proc_open, an exit pipe and a signal announce each exit, but one signal may announce several exits. */
final class SimultaneousExitsTest extends TidyTestCase
{
    use OwnDirectory;

    private const ROUNDS = 20;

    /** The background process of the first command keeps the command's exit pipe open. */
    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testAnExitWithoutAPipeIsKnownAtOnceAlthoughAnotherExitHasOne(StartMethod $start): void
    {
        $pool = new CommandPool(3, 0, new CommandPoolOptions(startMethod: $start));
        // The launcher always has events, so it never checks all commands because it has waited for long.
        Async::run(static fn() => $pool->execute(Command::shell('while :; do echo; sleep 0.05; done')))->ignore();
        $over = $this->path('over');
        for ($i = 0; $i < self::ROUNDS; ++$i) {
            $spin = "echo > {$this->path("\$\$.{$i}")}; while [ ! -e {$this->path("go.{$i}")} ]; do :; done";
            $first = Command::shell("(while [ ! -e {$over} ]; do sleep 0.1; done) > /dev/null 2>&1 & {$spin}");
            $executions = array_map(
                static fn(Command $command) => Async::run(static fn() => $pool->execute($command)),
                [$first, Command::shell($spin)],
            );
            $started = $this->path("*.{$i}");
            Eventually::holds(static fn(): bool => \count((array) glob($started)) === 2, 'both run');
            touch($this->path("go.{$i}"));
            Eventually::holds($executions[0]->isComplete(...), "exit {$i} is known");
            self::assertTrue($executions[1]->await()->succeeded());
        }
        touch($over);
        $pool->kill();
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Command\Contract;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use Spindle\Command\Command;
use Spindle\Command\CommandResult;
use Spindle\Tests\Async;
use Spindle\Tests\Conformance\Command\CommandPoolTestCase;
use Spindle\Tests\Eventually;
use Spindle\Tests\Processes;
use Spindle\Tests\Text;

/**
 * A command is ended with all its descendants.
 *
 * @phpstan-require-extends CommandPoolTestCase
 */
trait EndsTrees
{
    public function testATimeoutEndsFortyDescendantsSomeInSessionsOfTheirOwn(): void
    {
        $result = $this->pool(1, gracePeriod: 0.2)->execute(Command::shell(<<<'SH'
            for i in 1 2 3 4 5 6 7 8 9 10; do
                sleep 100 & echo $!
                (trap "" TERM; exec sleep 100) & echo $!
                setsid sh -c 'echo $$; exec sleep 100' &
                (setsid sh -c 'trap "" TERM; echo $$; sleep 100' &)
            done
            wait
            SH)->withTimeout(3.0));

        $descendants = Text::numbers($result->stdout());
        self::assertCount(40, array_unique($descendants));
        self::assertSame(
            [],
            array_values(array_filter($descendants, Processes::isAlive(...))),
            'they are gone when the result comes',
        );
        self::assertTrue($result->timedOut);
    }

    public function testADescendantThatClearsItsEnvironmentAndIgnoresTermIsEndedToo(): void
    {
        $pool = $this->pool(1, gracePeriod: 0.2);
        $result = $pool->execute(
            Command::shell(
                'env -i sh -c \'trap "" TERM; echo $$; while :; do sleep 0.1; done\' & wait',
            )->withTimeout(0.5),
        );

        self::assertFalse(Processes::isAlive((int) $result->stdout()));
    }

    public function testADescendantThatOutlivesItsParentsIsEndedToo(): void
    {
        $result = $this->pool(1, gracePeriod: 0.2)->execute(
            Command::shell(
                '(setsid sh -c "echo \$\$; exec sleep 100" &); (setsid sleep 100 &); sleep 100',
            )->withTimeout(0.5),
        );

        self::assertFalse(Processes::isAlive((int) $result->stdout()));
    }

    public function testOnlyTheTreeOfTheCommandThatIsOverItsTimeIsEnded(): void
    {
        $go = $this->path('go');
        $outputs = [];
        foreach ($this->pool(2)->run([
            'ended' => Command::shell('sleep 20 & sleep 20')->withTimeout(0.2),
            'other' => Command::shell("(until test -e {$go}; do sleep 0.02; done) & wait \$!; echo \$?"),
        ]) as $key => $result) {
            $outputs[$key] = $result->stdout();
            touch($go);
        }

        self::assertSame(['ended' => '', 'other' => "0\n"], $outputs);
    }

    public function testProcessesThatACommandLeftRunningEndWithThePool(): void
    {
        $pool = $this->pool(1);
        $result = $pool->execute(Command::shell('sleep 100 & echo $!; (setsid sleep 100 & echo $!)'));
        [$first, $second] = array_map(intval(...), explode("\n", $result->stdout()));
        self::assertTrue(Processes::isAlive($first) && Processes::isAlive($second));
        $pool->kill();

        self::assertFalse(Processes::isAlive($first) || Processes::isAlive($second));
    }

    public function testCancellingOneExecutionEndsItAlone(): void
    {
        $pool = $this->pool(2);
        $cancellation = new DeferredCancellation();
        Async::run(function () use ($cancellation): void {
            Eventually::holds(fn(): bool => (int) @file_get_contents($this->path('pid')) > 0, 'it runs');
            $cancellation->cancel();
        })->ignore();
        $other = Async::run(static fn(): CommandResult => $pool->execute(Command::of('sleep', '0.5')));
        try {
            $pool->execute(
                Command::shell('sleep 100 & echo $! > ' . $this->path('pid') . '; wait'),
                $cancellation->getCancellation(),
            );
            self::fail('Not cancelled');
        } catch (CancelledException) {
            self::assertFalse(Processes::isAlive((int) file_get_contents($this->path('pid'))));
        }
        self::assertTrue($other->await()->succeeded());
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Command\Contract;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use Amp\DeferredFuture;
use Amp\NullCancellation;
use PHPUnit\Framework\Attributes\TestWith;
use Psr\Log\AbstractLogger;
use Revolt\EventLoop;
use Spindle\Command\Command;
use Spindle\Command\CommandResult;
use Spindle\Command\RetryPolicy;
use Spindle\Internal\Async\LoopTurn;
use Spindle\LauncherException;
use Spindle\Tests\Async;
use Spindle\Tests\Conformance\Command\CommandPoolTestCase;
use Spindle\Tests\Drained;
use Spindle\Tests\Eventually;
use Spindle\Tests\Processes;
use Spindle\Tests\Text;

/**
 * Resizing, cancelling, closing and killing a pool, and its state after that.
 *
 * @phpstan-require-extends CommandPoolTestCase
 */
trait IsControlled
{
    public function testAPoolGrowsWhileItRuns(): void
    {
        $pool = $this->pool(1);
        $waiting = $this->path('waiting');
        mkdir($waiting);
        // Each command waits until all five run.
        $run = Async::run(
            fn() => self::outputs($pool->run(array_fill(
                0,
                5,
                Command::shell(
                    "touch {$waiting}/\$\$; until test \$(ls {$waiting} | wc -l) -ge 5; do sleep 0.02; done; echo met",
                ),
            ))),
        );
        Eventually::holds(static fn(): bool => \count(Text::names($waiting)) === 1, 'one has started');
        $pool->resize(5);

        self::assertSame(array_fill(0, 5, 'met'), $run->await());
    }

    public function testAPoolShrinksWhileItRuns(): void
    {
        $pool = $this->pool(6);
        $active = $this->path('active');
        mkdir($active);
        $command = Command::shell("touch {$active}/\$\$; ls {$active} | wc -l; sleep 0.03; rm {$active}/\$\$");
        $counts = [];
        foreach ($pool->run(array_fill(0, 40, $command)) as $result) {
            $counts[] = (int) $result->stdout();
            if (\count($counts) === 1) {
                $pool->resize(2);
            }
        }

        self::assertSame(2, max([0, ...\array_slice($counts, -20)]));
    }

    public function testThePoolReturnsTheKeysOfRunningCommands(): void
    {
        $pool = $this->pool(2);
        $gate = fn(string $name): string => $this->path($name);
        $command = static fn(string $name): Command => Command::shell(
            "touch {$gate($name)}; until test -e {$gate("{$name}-end")}; do sleep 0.05; done",
        );
        $commands = ['a' => $command('a'), 'b' => $command('b'), 'c' => $command('c'), 'd' => $command('d')];
        $run = Async::run(static fn(): array => iterator_to_array($pool->run($commands)));
        Eventually::holds(static fn(): bool => file_exists($gate('a')) && file_exists($gate('b')), 'two have started');
        self::assertSame(['a', 'b'], $pool->runningKeys());
        touch($gate('a-end'));
        Eventually::holds(static fn(): bool => file_exists($gate('c')), 'the next has started');
        Eventually::holds(static fn(): bool => $pool->runningKeys() === ['b', 'c'], 'the pool has noticed');
        array_map(touch(...), array_map($gate, ['b-end', 'c-end', 'd-end']));
        $run->await();

        self::assertSame([], $pool->runningKeys());
    }

    public function testAPausedPoolStartsNothingUntilItIsResumed(): void
    {
        $pool = $this->pool(2);
        $started = $this->path('started');
        $command = static fn(): Command => Command::shell("echo x >> {$started}; sleep 0.05");
        $results = 0;
        $commands = array_map($command, range(1, 10));
        foreach ($pool->run($commands) as $_) {
            if (++$results === 1) {
                $pool->pause();
                EventLoop::delay(0.3, static function () use ($pool, $started, &$pausedAt): void {
                    $pausedAt = \count((array) file($started));
                    $pool->resume();
                });
            }
        }

        self::assertSame(10, $results);
        self::assertIsInt($pausedAt ?? null);
        self::assertLessThanOrEqual(5, $pausedAt);
    }

    public function testAClosedPoolIsNotPaused(): void
    {
        $pool = $this->pool(1);
        $pool->execute(Command::of('true'));
        $pool->pause();
        $result = Async::run(static fn(): ?int => $pool->execute(Command::of('true'))->exitCode);
        LoopTurn::await();
        $pool->close();

        self::assertSame(0, $result->await());
    }

    #[TestWith(['output'])]
    #[TestWith(['input'])]
    public function testCloseIsRefusedInACallbackOrInputOfTheSamePool(string $caller): void
    {
        $pool = $this->pool(1);
        $input = static function () use ($pool): \Generator {
            yield 'x';
            $pool->close();
        };
        $command = $caller === 'output'
            ? Command::of('echo', 'x')->withStdout(static fn() => $pool->close())
            : Command::of('cat')->withInput($input());
        $refusal = self::thrown(\LogicException::class, static fn() => $pool->execute($command));
        self::assertStringContainsString('close() would wait for itself', $refusal->getMessage());
        self::assertTrue($pool->execute(Command::of('true'))->succeeded());
    }

    public function testTheOutputOfARunningCommandCanBeReadAndTheCommandEnded(): void
    {
        $pool = $this->pool(2);
        $large = str_repeat('x', 300_000);
        $commands = [
            'a' => Command::shell('echo one; echo two >&2; sleep 60'),
            'b' => Command::of('sh', '-c', 'head -c 300000 /dev/zero | tr "\\0" x; sleep 1; echo end'),
        ];
        $run = Async::run(static fn(): array => iterator_to_array($pool->run($commands)));
        Eventually::holds(static fn(): bool => $pool->partialOutput('a', 100) === ["one\n", "two\n"], 'a has printed');
        self::assertSame(["e\n", "o\n"], $pool->partialOutput('a', 2));
        Eventually::holds(static fn(): bool => $pool->partialOutput('b', 400_000) === [$large, ''], 'b has printed');
        self::assertSame(['', ''], $pool->partialOutput('c', 10));
        $pool->cancel('a');
        $pool->cancel('c');
        $results = $run->await();

        self::assertTrue($results['a']->cancelled);
        self::assertSame(["one\n", "two\n"], [$results['a']->stdout(), $results['a']->stderr()]);
        self::assertSame([0, "{$large}end\n"], [$results['b']->exitCode, $results['b']->stdout()]);
    }

    public function testTheOutputOfARunningCommandCanBeReadWhileAnotherRunHasWaitingCommands(): void
    {
        $pool = $this->pool(2);
        $go = $this->path('go');
        $long = Command::of('sleep', '1000');
        $brief = Command::shell("until [ -e {$go} ]; do sleep 0.05; done");
        $speaking = Command::shell('echo one; echo two >&2; sleep 1000');
        // After the brief commands, one command of each run has a slot. The other long one was submitted before.
        foreach ([[$brief, $brief, $long, $long], ['speaking' => $speaking]] as $commands) {
            Async::run(static fn(): array => iterator_to_array($pool->run($commands)))->ignore();
        }
        Eventually::holds(static fn(): bool => $pool->statistics()['waiting'] === 3, 'all are submitted');
        touch($go);

        $printed = static fn(): bool => $pool->partialOutput('speaking', 100) === ["one\n", "two\n"];
        Eventually::holds($printed, 'the output is known');
        Eventually::holds(static fn(): bool => $pool->runningKeys() === [2, 'speaking'], 'the starts are known');
        $pool->kill();
    }

    public function testOfSeveralCommandsWithAKeyTheRunningOneIsEnded(): void
    {
        $pool = $this->pool(2);
        $go = $this->path('go');
        $long = Command::of('sleep', '1000');
        $brief = Command::shell("until [ -e {$go} ]; do sleep 0.05; done");
        // After the brief commands, one command of each run has a slot.
        $commands = ['a' => $brief, 'b' => $brief, 'c' => $long, 'd' => $long];
        $run = Async::run(static fn(): array => iterator_to_array($pool->run($commands)));
        $speaking = Command::shell('echo x; sleep 1000');
        $other = Async::run(static fn(): array => iterator_to_array($pool->run(['d' => $speaking])));
        Eventually::holds(static fn(): bool => $pool->statistics()['waiting'] === 3, 'all are submitted');
        touch($go);
        Eventually::holds(static fn(): bool => $pool->statistics()['finished_total'] === 2, 'the brief ones are over');
        Eventually::holds(static fn(): bool => $pool->partialOutput('d', 2) === ["x\n", ''], 'two others run');
        self::assertEqualsCanonicalizing(['c', 'd'], $pool->runningKeys());
        $pool->cancel('d');

        self::assertSame('cancelled', $other->await()['d']->error);
        $pool->cancelAll();
        self::assertSame(0, $pool->statistics()['waiting']);
        self::assertCount(4, $run->await());
    }

    public function testOfSeveralCommandsWithAKeyTheRunningOneIsEndedThoughItsStartIsNotKnown(): void
    {
        $pool = $this->pool(1);
        [$go, $runs] = [$this->path('go'), $this->path('runs')];
        $commands = ['a' => Command::shell("until [ -e {$go} ]; do sleep 0.05; done"), 'b' => Command::of('true')];
        $run = Async::run(static fn(): array => iterator_to_array($pool->run($commands)));
        $running = ['b' => Command::shell("touch {$runs}; sleep 1000")];
        $other = Async::run(static fn(): array => iterator_to_array($pool->run($running)));
        Eventually::holds(static fn(): bool => $pool->statistics()['waiting'] === 2, 'all are submitted');
        touch($go);
        Eventually::holdsByItself(static fn(): bool => is_file($runs), 'the second run has the slot');
        $pool->cancel('b');

        self::assertSame('cancelled', $other->await()['b']->error);
        self::assertTrue($run->await()['b']->succeeded());
    }

    public function testACommandCanBeEndedByItsKeyAsSoonAsItIsSubmitted(): void
    {
        $pool = $this->pool(1);
        $commands = (static function () use ($pool): \Generator {
            yield 'a' => Command::of('sleep', '1000');
            self::assertSame(['a'], $pool->runningKeys());
            $pool->cancel('a');
        })();

        self::assertTrue(iterator_to_array($pool->run($commands))['a']->cancelled);
    }

    public function testACommandThatHasFailedBeforeItsKeyIsCancelledIsNotRetried(): void
    {
        $pool = $this->pool(1, 1);
        [$file, $go] = [$this->path('pid'), $this->path('go')];
        $command = Command::shell("echo \$\$ > {$file}; until [ -e {$go} ]; do sleep 0.05; done; exit 1");
        $run = Async::run(static fn(): array => iterator_to_array($pool->run(['a' => $command])));
        Eventually::holds(static fn(): bool => (int) @file_get_contents($file) > 0, 'it has started');
        $pid = (int) file_get_contents($file);
        touch($go);
        Eventually::holdsByItself(static fn(): bool => !Processes::isAlive($pid), 'it has exited');
        $pool->cancel('a');
        $result = $run->await()['a'];

        self::assertSame([true, 1], [$result->cancelled, $result->attempts]);
    }

    public function testAKeyEndsACommandThatWaitsForARetry(): void
    {
        $pool = $this->pool(1, new RetryPolicy(1, delay: 60.0));
        $run = Async::run(static fn(): array => iterator_to_array($pool->run(['a' => Command::of('false')])));
        Eventually::holds(static fn(): bool => $pool->statistics()['retried_total'] === 1, 'it pauses');
        self::assertSame([], $pool->runningKeys());
        $pool->cancel('a');
        $result = $run->await()['a'];

        self::assertSame([true, 1], [$result->cancelled, $result->attempts]);
        self::assertSame('cancelled before its next attempt', $result->error);
    }

    public function testAKeyEndsACommandWhoseRetryWaitsForASlot(): void
    {
        $pool = $this->pool(1, new RetryPolicy(1, delay: 0.0));
        $started = $this->path('started');
        $commands = ['a' => Command::of('false'), 'b' => Command::shell("touch {$started}; exec sleep 1000")];
        $run = Async::run(static fn(): array => iterator_to_array($pool->run($commands)));
        Eventually::holds(static fn(): bool => file_exists($started), 'the other command runs');
        self::assertSame([1, ['b']], [$pool->statistics()['retried_total'], $pool->runningKeys()]);
        $pool->cancel('a');
        Eventually::holds(static fn(): bool => $pool->statistics()['finished_total'] === 1, 'it has ended');
        self::assertSame(['b'], $pool->runningKeys());
        $pool->cancel('b');
        $results = $run->await();

        self::assertSame([true, 1], [$results['a']->cancelled, $results['a']->attempts]);
        self::assertSame('cancelled', $results['b']->error);
    }

    public function testAKeyEndsNoCommandThatWaitsInAPausedPool(): void
    {
        $pool = $this->pool(1);
        $pool->pause();
        $run = Async::run(static fn(): array => iterator_to_array($pool->run(['a' => Command::of('true')])));
        Eventually::holds(static fn(): bool => $pool->statistics()['waiting'] === 1, 'it is submitted');
        self::assertSame([], $pool->runningKeys());
        $pool->cancel('a');
        $pool->resume();

        self::assertTrue($run->await()['a']->succeeded());
    }

    public function testCommandsBeyondALowerConcurrencyAreKnownToRun(): void
    {
        $pool = $this->pool(3);
        $commands = array_fill_keys(['a', 'b', 'c'], Command::shell('echo x; sleep 1000'));
        $run = Async::run(static fn(): array => iterator_to_array($pool->run($commands)));
        foreach (array_keys($commands) as $key) {
            Eventually::holds(static fn(): bool => $pool->partialOutput($key, 1) === ["\n", ''], 'all run');
        }
        $pool->resize(1);
        self::assertSame(['a', 'b', 'c'], $pool->runningKeys());
        $pool->cancel('c');
        Eventually::holds(static fn(): bool => $pool->runningKeys() === ['a', 'b'], 'one has ended');
        $pool->cancelAll();

        self::assertCount(3, $run->await());
    }

    public function testCommandsThatALowerConcurrencyKeepsFromStartingAreKnownToWait(): void
    {
        $pool = $this->pool(3);
        $pool->execute(Command::of('true'));
        foreach ([static fn() => $pool->resize(1), static fn() => $pool->pause()] as $kept => $keepBack) {
            [$launcher] = Processes::launchers();
            posix_kill($launcher, \SIGSTOP); // so that it gets all frames at the same time
            $commands = (static function () use ($keepBack, $launcher): \Generator {
                yield from array_fill_keys(['a', 'b', 'c'], Command::of('sleep', '1000'));
                $keepBack();
                posix_kill($launcher, \SIGCONT);
            })();
            $run = Async::run(static fn(): array => iterator_to_array($pool->run($commands)));
            $areKept = static fn(): bool => $pool->statistics()['waiting'] === 2 + $kept;
            Eventually::holds($areKept, 'the others wait');
            self::assertSame($kept === 0 ? ['a'] : [], $pool->runningKeys());
            $pool->cancelAll();
            self::assertCount(3, $run->await());
        }
    }

    public function testAnOutputCallbackThatSuspendsHoldsUpNoCancellation(): void
    {
        $pool = $this->pool(1);
        $asleep = new DeferredFuture();
        $cancellation = new DeferredCancellation();
        $command = Command::of('echo', 'x')->withStdout(static function () use ($asleep, $cancellation): void {
            EventLoop::delay(0.1, static fn() => $cancellation->cancel());
            $asleep->getFuture()->await();
        });
        try {
            $pool->execute($command, $cancellation->getCancellation());
            self::fail('It is cancelled');
        } catch (CancelledException) {
            self::assertSame("y\n", $pool->execute(Command::of('echo', 'y'))->stdout());
        } finally {
            $asleep->complete();
        }
    }

    public function testAnExitedCommandWithUndeliveredOutputIsNotRetriedAfterCancelAllOrKill(): void
    {
        foreach (['cancelAll', 'kill'] as $end) {
            $starts = $this->path($end);
            $pool = $this->pool(1, retries: 2);
            $asleep = new DeferredFuture();
            $called = new DeferredFuture();
            $command = Command::shell("echo x >> {$starts}; echo x; exit 1")->withStdout(
                static function () use ($called, $asleep): void {
                    $called->complete();
                    $asleep->getFuture()->await();
                },
            );
            $run = Async::run(static fn(): Drained => new Drained($pool->run([$command])));
            $called->getFuture()->await();
            $end === 'kill' ? $pool->kill() : $pool->cancelAll();
            $asleep->complete();
            $drained = $run->await();

            self::assertSame($end === 'kill', $drained->thrown instanceof LauncherException);
            self::assertCount(1, Text::lines($starts));
        }
    }

    public function testCancelAllEndsRunningAndWaitingCommands(): void
    {
        $pool = $this->pool(2);
        $log = $this->path('log');
        $command = Command::shell("echo x >> {$log}; exec sleep 20");
        $run = Async::run(static fn(): array => iterator_to_array($pool->run(array_fill(0, 4, $command))));
        Eventually::holds(static fn(): bool => \count(Text::lines($log)) === 2, 'two run');
        $pool->cancelAll();
        $results = $run->await();
        ksort($results);

        self::assertSame(
            [true, true, true, true],
            array_map(static fn(CommandResult $result): bool => $result->cancelled, $results),
        );
        self::assertSame([1, 1, 0, 0], array_map(static fn(CommandResult $result): int => $result->attempts, $results));
        self::assertTrue($pool->execute(Command::of('true'))->succeeded());
    }

    public function testARunContinuesWithItsInputAfterCancelAll(): void
    {
        $pool = $this->pool(1);
        $started = $this->path('started');
        $cancelled = new DeferredFuture();
        $input = static function () use ($started, $cancelled): \Generator {
            yield 'first' => Command::shell("touch {$started}; exec sleep 20");
            $cancelled->getFuture()->await();
            yield 'second' => Command::of('true');
        };
        $run = Async::run(static fn(): array => iterator_to_array($pool->run($input())));
        Eventually::holds(static fn(): bool => file_exists($started), 'the first command runs');
        $pool->cancelAll();
        $cancelled->complete();
        $results = $run->await();

        self::assertTrue($results['first']->cancelled);
        self::assertTrue($results['second']->succeeded());
    }

    public function testKillFailsRunsAndNamesTheKeysOfTheirCommands(): void
    {
        $pool = $this->pool(2);
        $log = $this->path('log');
        $command = Command::shell("echo x >> {$log}; exec sleep 20");
        $run = Async::run(static fn(): array => iterator_to_array($pool->run(['a' => $command, 'b' => $command])));
        Eventually::holds(static fn(): bool => \count(Text::lines($log)) === 2, 'both run');
        $pool->kill();
        $exception = self::thrown(LauncherException::class, static fn() => $run->await());
        self::assertSame(['a', 'b'], $exception->unfinished);
    }

    public function testACloseDuringARunFinishesWhatTheRunHasRead(): void
    {
        $pool = $this->pool(1);
        $gate = $this->path('gate');
        $log = $this->path('log');
        $seen = $this->path('seen');
        $input = static function () use ($gate, $log, $seen): \Generator {
            yield 'first' => Command::shell("echo x >> {$log}; until [ -e {$gate} ]; do sleep 0.05; done");
            Eventually::holds(static fn(): bool => file_exists($gate), 'the pool is being closed');
            touch($seen);
            yield 'second' => Command::of('true');
        };
        $run = Async::run(static fn(): Drained => new Drained($pool->run($input())));
        Eventually::holds(static fn(): bool => file_exists($log), 'the first command runs');
        $closing = Async::run($pool->close(...));
        touch($gate);
        $closing->await();
        $drained = $run->await();
        Eventually::holds(static fn(): bool => file_exists($seen), 'the input, which nothing waits for, has gone on');

        self::assertInstanceOf(LauncherException::class, $drained->thrown);
        self::assertStringContainsString('before the run had read all of its input', $drained->thrown->getMessage());
        self::assertSame(['first'], $drained->keys);
        self::assertTrue($drained->results[0]->succeeded());
    }

    public function testAPoolIsUsableAfterEachEnding(): void
    {
        $pool = $this->pool(2, gracePeriod: 0.2);
        foreach ($pool->run(array_fill(0, 6, Command::of('sleep', '0.05'))) as $_) {
            break;
        }
        self::assertSame(['1'], self::outputs($pool->run([Command::of('echo', '1')])), 'after a loop that was left');

        $cancellation = new DeferredCancellation();
        try {
            foreach ($pool->run(
                array_fill(0, 6, Command::of('sleep', '0.05')),
                $cancellation->getCancellation(),
            ) as $_) {
                $cancellation->cancel();
            }
            self::fail('Not cancelled');
        } catch (CancelledException) {
            self::assertSame(['2'], self::outputs($pool->run([Command::of('echo', '2')])));
        }

        $pool->execute(Command::of('sleep', '9')->withTimeout(0.05));
        self::assertSame(['3'], self::outputs($pool->run([Command::of('echo', '3')])), 'after a timeout');
    }

    public function testACancellationRequestedBeforehandStartsNothing(): void
    {
        $cancellation = new DeferredCancellation();
        $cancellation->cancel();
        $touch = Command::of('touch', $this->path('touched'));
        $pool = $this->pool(1);
        foreach ([
            static fn() => $pool->execute($touch, $cancellation->getCancellation()),
            static fn() => iterator_to_array($pool->run([$touch], $cancellation->getCancellation())),
        ] as $use) {
            self::thrown(CancelledException::class, static fn() => $use());
            $pool->execute(Command::of('true'));
            self::assertFileDoesNotExist($this->path('touched'));
        }
    }

    public function testACancellationThatNeverComesChangesNothing(): void
    {
        $pool = $this->pool(1);
        $never = new DeferredCancellation();

        self::assertTrue($pool->execute(Command::of('true'), new NullCancellation())->succeeded());
        self::assertCount(
            2,
            iterator_to_array($pool->run([Command::of('true'), Command::of('true')], $never->getCancellation())),
        );
        self::assertFalse($never->isCancelled());
    }

    public function testTheGeneratorKeepsThePoolAlive(): void
    {
        $run = $this->pool(2)->run(array_fill(0, 10, Command::of('echo', 'x')));
        gc_collect_cycles();

        self::assertCount(10, self::outputs($run));
    }

    public function testALoggerThatThrowsChangesNoOutcome(): void
    {
        $logger = new class extends AbstractLogger {
            public function log(mixed $level, string|\Stringable $message, array $context = []): void
            {
                throw new \DomainException((string) $message);
            }
        };
        $thrown = [];
        $before = EventLoop::getErrorHandler();
        EventLoop::setErrorHandler(static function (\Throwable $failure) use (&$thrown): void {
            $thrown[] = $failure->getMessage();
        });
        try {
            $pool = $this->pool(2, retries: 1, logger: $logger);
            $outcomes = [];
            foreach ($pool->runInOrder([Command::of('true'), Command::of('false'), Command::of('true')]) as $result) {
                $outcomes[] = [$result->exitCode, $result->attempts];
            }
            self::assertTrue($pool->execute(Command::of('true'))->succeeded());
            Eventually::holds(static function () use (&$thrown): bool {
                return \count(array_filter(
                    $thrown,
                    static fn(string $message): bool => str_starts_with($message, 'Ended'),
                )) === 4;
            }, 'All is reported to the error handler');
        } finally {
            EventLoop::setErrorHandler($before);
        }

        self::assertSame([[0, 1], [1, 2], [0, 1]], $outcomes);
    }

    /** @param list<string>|null $outputs outputs of the commands; null if the pool was closed before they started */
    #[TestWith(['kill', null])]
    #[TestWith(['cancelWaiting', []])]
    #[TestWith(['execute', ['ran']])]
    public function testALoggerCanCallThePoolWhileALauncherStarts(string $method, ?array $outputs): void
    {
        $logger = new class extends AbstractLogger {
            /** @var (\Closure(): mixed)|null */
            public ?\Closure $call = null;

            /** Result of the call, or the class of its exception. */
            public mixed $outcome = 'none';

            public function log(mixed $level, string|\Stringable $message, array $context = []): void
            {
                [$call, $this->call] = [$this->call, null];
                try {
                    $this->outcome = $call === null ? $this->outcome : $call();
                } catch (\Throwable $thrown) {
                    $this->outcome = $thrown::class;
                }
            }
        };
        $pool = $this->pool(1, logger: $logger);
        $logger->call = static fn(): mixed => match ($method) {
            'kill' => $pool->kill(),
            'cancelWaiting' => $pool->cancelWaiting(),
            default => $pool->execute(Command::of('true'))->exitCode,
        };
        $run = static fn(): array => self::outputs($pool->run([Command::of('echo', 'ran')]));
        if ($outputs === null) {
            self::thrown(LauncherException::class, $run);
        } else {
            self::assertSame($outputs, $run());
        }
        Eventually::holds(static fn(): bool => $logger->outcome !== 'none', 'the call ends');
        self::assertSame($method === 'execute' ? 0 : null, $logger->outcome);
    }

    public function testALoggerGetsEachStepButNoSecrets(): void
    {
        $logger = new class extends AbstractLogger {
            /** @var list<string> */
            public array $lines = [];

            public function log(mixed $level, string|\Stringable $message, array $context = []): void
            {
                \assert(\is_string($level));
                $this->lines[] = "{$level} {$message} " . json_encode($context);
            }
        };
        $pool = $this->pool(1, retries: 1, logger: $logger);
        $pool->execute(
            Command::shell('echo secret output; exit 3')
                ->withEnvironment(['TOKEN' => 'secret value'])
                ->withInput('secret input'),
        );
        $pool->kill();
        $log = implode("\n", $logger->lines);

        self::assertSame([], preg_grep('/^debug /', $logger->lines, \PREG_GREP_INVERT));
        self::assertStringContainsString('launcher', $log);
        self::assertStringContainsString('exit code 3', $log);
        self::assertStringNotContainsString('secret value', $log);
        self::assertStringNotContainsString('secret input', $log);
    }
}

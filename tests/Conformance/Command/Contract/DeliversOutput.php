<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Command\Contract;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use Amp\DeferredFuture;
use PHPUnit\Framework\Attributes\TestWith;
use Spindle\Command\Command;
use Spindle\Command\CommandResult;
use Spindle\Command\RetryPolicy;
use Spindle\Command\StreamException;
use Spindle\LauncherException;
use Spindle\Tests\Async;
use Spindle\Tests\Conformance\Command\CommandPoolTestCase;
use Spindle\Tests\Eventually;
use Spindle\Tests\Processes;
use Spindle\Tests\Streams;

use function Amp\delay;

/**
 * Effects of callbacks and open streams for output on their own command and on others.
 *
 * @phpstan-require-extends CommandPoolTestCase
 */
trait DeliversOutput
{
    public function testAClosureHasHadEverythingWhenTheResultComes(): void
    {
        $received = '';
        $results = $this->pool(2)->run(array_fill(0, 20, Command::shell('echo out; echo error >&2')
            ->withStdout(static function (string $bytes) use (&$received): void {
                delay(0.01);
                $received .= $bytes;
            })));
        $count = 0;
        foreach ($results as $result) {
            self::assertSame("error\n", $result->stderr());
            self::assertGreaterThanOrEqual(4 * ++$count, \strlen($received));
        }

        self::assertSame(str_repeat("out\n", 20), $received);
    }

    public function testAKeyPreventsTheRetryOfACommandWhoseOutputIsBeingDelivered(): void
    {
        $pool = $this->pool(1, new RetryPolicy(1, delay: 0.0));
        $delivery = new DeferredFuture();
        $received = '';
        $command = Command::shell('echo 1; sleep 0.05; echo 2; exit 3')->withStdout(
            static function (string $bytes) use ($delivery, &$received): void {
                $received .= $bytes;
                $delivery->getFuture()->await();
            },
        );
        $run = Async::run(static fn(): array => iterator_to_array($pool->run(['a' => $command])));
        Eventually::holds(
            static function () use ($pool, &$received): bool {
                return $received !== '' && $pool->runningKeys() === [];
            },
            'it has ended',
        );
        $pool->cancel('a');
        $delivery->complete();
        $result = $run->await()['a'];

        self::assertSame([3, 1, "1\n2\n"], [$result->exitCode, $result->attempts, $received]);
    }

    public function testAClosureThatThrowsEndsItsCommandAndItsExceptionReachesTheCaller(): void
    {
        $pool = $this->pool(1);
        $pid = 0;
        $thrown = null;
        try {
            $pool->execute(
                Command::shell('echo $$; sleep 20')->withStdout(static function (string $bytes) use (&$pid): void {
                    $pid = (int) $bytes;

                    throw new \DomainException('not this one');
                }),
            );
        } catch (\Throwable $thrown) {
            self::assertSame('not this one', $thrown->getMessage());
        }

        self::assertInstanceOf(\DomainException::class, $thrown);
        self::assertFalse(Processes::isAlive($pid));
        self::assertSame("next\n", $pool->execute(Command::of('echo', 'next'))->stdout());
    }

    public function testAnExceptionOfAnotherCommandsOutputReachesTheCallerToo(): void
    {
        $pool = $this->pool(1);
        $input = static function (): \Generator {
            yield 'x';

            throw StreamException::tooLarge(7);
        };
        foreach ([
            Command::of('echo')->withStdout(static fn() => throw StreamException::tooLarge(7)),
            Command::of('cat')->withInput($input()),
        ] as $command) {
            $thrown = null;
            try {
                $pool->execute($command);
            } catch (\Throwable $thrown) {
                self::assertStringContainsString('output of 7 bytes', $thrown->getMessage());
            }
            self::assertInstanceOf(StreamException::class, $thrown);
        }
    }

    public function testAClosureThatThrowsEndsItsRun(): void
    {
        $keys = [];
        $this->expectException(\DomainException::class);
        try {
            foreach ($this->pool(2)->run([
                'fine' => Command::of('true'),
                'bad' => Command::shell('sleep 0.2; echo x')->withStdout(static fn() => throw new \DomainException()),
                'long' => Command::of('sleep', '20'),
            ]) as $key => $result) {
                $keys[$key] = $result->succeeded();
            }
        } finally {
            self::assertTrue($keys['fine'] ?? false);
            self::assertFalse($keys['long'] ?? false);
        }
    }

    public function testAClosureMayRunCommandsOnTheSamePool(): void
    {
        $pool = $this->pool(2);
        $inner = '';
        $pool->execute(
            Command::of('echo', 'outer')->withStdout(static function (string $bytes) use ($pool, &$inner): void {
                $inner .= $pool->execute(Command::of('echo', "inner {$bytes}"))->stdout();
            }),
        );

        self::assertSame("inner outer\n\n", $inner);
    }

    public function testAnOpenFileGetsTheOutput(): void
    {
        $file = Streams::open($this->path('output'), 'w+');
        fwrite($file, 'before ');
        $result = $this->execute(Command::of('echo', 'output')->withStdout($file));

        self::assertSame('', $result->stdout());
        self::assertSame("before output\n", file_get_contents($this->path('output')));
        self::assertIsResource($file, 'the stream is left open');
    }

    public function testOutputToASocketThatIsReadHereDoesNotBlock(): void
    {
        [$near, $far] = Streams::pair();
        $running = Async::run(
            fn(): CommandResult => $this->execute($this->php('echo str_repeat("x", 3_000_000);')->withStdout($near)),
        );
        $length = 0;
        stream_set_blocking($far, false);
        Eventually::holds(static function () use ($far, &$length): bool {
            while (($bytes = (string) fread($far, 1 << 20)) !== '') {
                $length += \strlen($bytes);
            }

            return $length === 3_000_000;
        }, 'all of it arrives', 15);

        self::assertTrue($running->await()->succeeded());
    }

    #[TestWith([false])]
    #[TestWith([true])]
    public function testAFullStreamCanBeClosedWhenItsCommandWasCancelledOrKilled(bool $isKilled): void
    {
        [$near, $far] = Streams::pair();
        $pool = $this->pool(1);
        $cancellation = new DeferredCancellation();
        $command = Command::of('yes')->withStdout($near);
        $running = Async::run(static fn() => $pool->execute($command, $cancellation->getCancellation()));
        Eventually::holds(static function () use ($near): bool {
            [$none, $writable] = [null, [$near]];

            return stream_select($none, $writable, $none, 0) === 0;
        }, 'the stream is full');
        $isKilled ? $pool->kill() : $cancellation->cancel();
        try {
            $running->await();
            self::fail('it has a result');
        } catch (CancelledException|LauncherException) {
            fclose($near);
        }
        delay(0); // would fail in stream_select() if the stream were still watched

        self::assertIsResource($far);
    }

    public function testAStreamThatCannotBeWrittenFailsItsCommandAlone(): void
    {
        $full = Streams::open('/dev/full', 'w');
        $results = iterator_to_array($this->pool(2)->run([
            'full' => Command::shell('echo lost; sleep 20')->withStdout($full),
            'other' => Command::of('echo', 'kept'),
        ]));

        self::assertFalse($results['full']->succeeded());
        self::assertStringContainsString('No space left', $results['full']->describe());
        self::assertSame("kept\n", $results['other']->stdout());
    }

    public function testAStreamThatIsClosedMeanwhileFailsItsCommandAlone(): void
    {
        $file = Streams::open($this->path('output'), 'w');
        $pool = $this->pool(2);
        $command = Command::shell('echo lost; sleep 20')->withStdout($file);
        fclose($file);
        $result = $pool->execute($command);

        self::assertFalse($result->succeeded());
        self::assertStringContainsString('closed', $result->describe());
        self::assertLessThan(10, $result->duration);
    }
}

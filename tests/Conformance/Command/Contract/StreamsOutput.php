<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Command\Contract;

use Spindle\Command\Command;
use Spindle\Command\CommandResult;
use Spindle\Tests\Async;
use Spindle\Tests\Conformance\Command\CommandPoolContract;
use Spindle\Tests\Eventually;
use Spindle\Tests\Processes;
use Spindle\Tests\Streams;

use function Amp\delay;

/**
 * Output that goes to a closure or an open stream.
 *
 * @phpstan-require-extends CommandPoolContract
 */
trait StreamsOutput
{
    public function testAClosureGetsEveryByteInOrder(): void
    {
        $received = '';
        $result = $this->execute($this->php('for ($i = 0; $i < 300_000; ++$i) { echo $i, "\n"; }')
            ->withStdout(static function (string $bytes) use (&$received): void {
                $received .= $bytes;
            }));

        self::assertTrue($received === implode("\n", range(0, 299_999)) . "\n");
        self::assertSame('', $result->stdout(), 'it is not captured as well');
    }

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

    public function testAClosureGetsOutputBeforeTheCommandEnds(): void
    {
        $go = $this->path('go');
        $result = $this->execute(Command::shell("echo first; until test -e {$go}; do sleep 0.02; done; echo second")
            ->withStdout(static function () use ($go): void {
                touch($go);
            }));

        self::assertTrue($result->succeeded());
    }

    public function testBothOutputsMayGoToClosures(): void
    {
        $out = $error = '';
        $this->execute($this->php('for ($i = 0; $i < 200; ++$i) { fwrite(STDOUT, str_repeat("o", 1000)); fwrite(STDERR, str_repeat("e", 1000)); }')
            ->withStdout(static function (string $bytes) use (&$out): void {
                $out .= $bytes;
            })
            ->withStderr(static function (string $bytes) use (&$error): void {
                $error .= $bytes;
            }));

        self::assertTrue($out === str_repeat('o', 200_000));
        self::assertTrue($error === str_repeat('e', 200_000));
    }

    public function testAClosureThatThrowsEndsItsCommandAndItsExceptionReachesTheCaller(): void
    {
        $pool = $this->pool(1);
        $pid = 0;
        $thrown = null;
        try {
            $pool->execute(Command::shell('echo $$; sleep 20')->withStdout(static function (string $bytes) use (&$pid): void {
                $pid = (int) $bytes;

                throw new \DomainException('not this one');
            }));
        } catch (\Throwable $thrown) {
            self::assertSame('not this one', $thrown->getMessage());
        }

        self::assertInstanceOf(\DomainException::class, $thrown);
        self::assertFalse(Processes::isAlive($pid));
        self::assertSame("next\n", $pool->execute(Command::of('echo', 'next'))->stdout());
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

    public function testAClosureThatSuspendsHoldsTheCommandBackButNotTheOthers(): void
    {
        $pool = $this->pool(2);
        $received = 0;
        $command = $this->php('$t = hrtime(true); for ($i = 0; $i < 80; ++$i) { fwrite(STDOUT, str_repeat("x", 100_000)); } fwrite(STDERR, (hrtime(true) - $t) / 1e9);')
            ->withStdout(static function (string $bytes) use (&$received): void {
                delay(0.5 * \strlen($bytes) / 8_000_000);
                $received += \strlen($bytes);
            });
        $slow = Async::run(static fn(): CommandResult => $pool->execute($command));
        $others = 0;
        while (!$slow->isComplete()) {
            $pool->execute(Command::of('true'));
            ++$others;
        }

        self::assertGreaterThan(0.2, (float) $slow->await()->stderr(), 'the command waited for the closure');
        self::assertSame(8_000_000, $received);
        self::assertGreaterThan(5, $others);
    }

    public function testAClosureMayRunCommandsOnTheSamePool(): void
    {
        $pool = $this->pool(2);
        $inner = '';
        $pool->execute(Command::of('echo', 'outer')->withStdout(static function (string $bytes) use ($pool, &$inner): void {
            $inner .= $pool->execute(Command::of('echo', "inner {$bytes}"))->stdout();
        }));

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
        $running = Async::run(fn(): CommandResult => $this->execute($this->php('echo str_repeat("x", 3_000_000);')->withStdout($near)));
        $length = 0;
        stream_set_blocking($far, false);
        Eventually::holds(static function () use ($far, &$length): bool {
            $length += \strlen((string) fread($far, 1 << 20)) + \strlen((string) fread($far, 1 << 20));

            return $length === 3_000_000;
        }, 'all of it arrives', 15);

        self::assertTrue($running->await()->succeeded());
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

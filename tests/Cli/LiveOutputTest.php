<?php

declare(strict_types=1);

namespace Spindle\Tests\Cli;

use PHPUnit\Framework\Attributes\DataProvider;
use Spindle\Tests\Eventually;

/** The output of jobs that still run, and signals during it. */
final class LiveOutputTest extends SpindleCommandTestCase
{
    private const JOB = 'echo {}; touch started; while [ ! -e go ]; do sleep 0.05; done; echo end';

    /** @return iterable<string, array{list<string>}> */
    public static function options(): iterable
    {
        yield 'lines' => [['--line-buffer']];
        yield 'no groups' => [['--ungroup']];
    }

    /** @param list<string> $options */
    #[DataProvider('options')]
    public function testALineIsPrintedWhileItsJobRuns(array $options): void
    {
        $process = $this->start(['-j1', ...$options, self::JOB, ':::', 'a']);
        Eventually::holdsByItself(
            static fn(): bool => $process->getOutput() === "a\n",
            'the first line is printed',
            10.0,
        );
        $this->file('go', '');

        $process->wait();
        self::assertOutcome(0, "a\nend\n", $process);
    }

    public function testALongTagBeforeManyLinesNeedsLittleMemory(): void
    {
        $this->file('in', str_repeat('t', 100_000) . "\n");
        $process = $this->shell(
            escapeshellarg(\PHP_BINARY) . ' -d memory_limit=128M $SPINDLE run --line-buffer --tag -a in'
            . ' \'yes "" | head -c 2000; : {#}\' | wc -c',
        );

        self::assertOutcome(0, "200004000\n", $process);
    }

    public function testLongIncompleteLinesOfManyJobsFitIntoTheMemoryLimit(): void
    {
        $job = 'head -c 3000000 /dev/zero; : >w{}; until [ -e w1 -a $(ls w* | wc -l) = 30 ]; do sleep 0.05; done';
        $process = $this->shell(
            'seq 30 | ' . escapeshellarg(\PHP_BINARY) . ' -d memory_limit=64M $SPINDLE run -j30 --line-buffer '
            . escapeshellarg($job) . ' | wc -c',
        );

        self::assertOutcome(0, "90000000\n", $process);
    }

    public function testALineThatATryHasNotCompletedContinuesInTheNextTry(): void
    {
        $line = 'printf {}; echo x >&2; [ -e tried ] && echo z || { : >tried; false; }';
        $process = $this->spindle(['-j1', '--line-buffer', '--retries', '2', $line, ':::', 'a']);

        self::assertOutcome(0, "aaz\n", $process, "x\nx\n");
    }

    public function testACommandIsPrintedWhenItStarts(): void
    {
        $process = $this->start(['-j1', '-t', self::JOB, ':::', 'a']);
        Eventually::holdsByItself(
            static fn(): bool => str_starts_with($process->getErrorOutput(), 'echo a; touch started;'),
            'the command is printed',
            10.0,
        );
        $this->file('go', '');

        self::assertSame(0, $process->wait());
    }

    /** @return iterable<string, array{int, int, list<string>}> signal, exit status, options */
    public static function signals(): iterable
    {
        foreach ([[], ['--line-buffer'], ['--ungroup']] as $options) {
            $with = implode('', $options);
            yield "TERM {$with}" => [\SIGTERM, 143, $options];
            yield "HUP {$with}" => [\SIGHUP, 129, $options];
        }
    }

    /** @param list<string> $options */
    #[DataProvider('signals')]
    public function testASignalEndsTheJobs(int $signal, int $status, array $options): void
    {
        $process = $this->start(['-j1', ...$options, self::JOB, ':::', 'a', 'b']);
        $this->waitForFile('started');

        $process->signal($signal);

        self::assertSame($status, $process->wait());
        $this->assertNothingRuns();
    }

    public function testAPercentageOfAHaltIsOneOfTheWholeInput(): void
    {
        $input = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n";
        $process = $this->spindle(['-j1', '--halt', 'soon,fail=30%', 'echo {}; false'], $input);

        self::assertSame([30, "1\n2\n3\n"], [$process->getExitCode(), $process->getOutput()]);
    }

    public function testAReaderThatLeavesEndsTheRun(): void
    {
        $process = $this->shell('$SPINDLE run -j2 --lb "echo {}; sleep 0.1" ::: $(seq 1000) | head -1 > /dev/null;'
            . ' exit ${PIPESTATUS[0]}');

        self::assertSame(141, $process->getExitCode());
    }

    public function testANicenessAboveTheOwnNeedsAPrivilege(): void
    {
        if (posix_geteuid() === 0) {
            self::markTestSkipped('Root can set each niceness');
        }
        $process = $this->spindle(['--nice', '-20', 'touch ran', ':::', 'a']);

        self::assertOutcome(
            255,
            '',
            $process,
            "spindle: option --nice: can't set the niceness -20; a lower niceness needs a privilege\n",
        );
    }
}

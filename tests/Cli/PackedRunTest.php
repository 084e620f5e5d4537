<?php

declare(strict_types=1);

namespace Spindle\Tests\Cli;

/** Commands that have as many values as fit: the values are never split in the process of `spindle run`. */
final class PackedRunTest extends SpindleCommandTestCase
{
    private const MAX_GROWTH_KIBIBYTES = 3 << 10;

    public function testEachOfManyValuesIsOneArgumentOfOneJob(): void
    {
        $values = implode("\n", range(1, 400_000)) . "\n";
        $lines = $this->spindle(['-X', '-k', '-j2', 'printf', '%s\n'], $values);
        $counts = $this->spindle(['-X', '-k', '-j2', 'sh', '-c', 'echo $#', 'sh'], $values);

        self::assertSame([0, ''], [$lines->getExitCode(), $lines->getErrorOutput()]);
        self::assertTrue($lines->getOutput() === $values, 'All values, in their order');
        $jobs = explode("\n", trim($counts->getOutput()));
        self::assertSame(400_000, array_sum(array_map(intval(...), $jobs)));
    }

    public function testACommandHasAsManyValuesAsThatOfXargs(): void
    {
        $process = $this->shell(<<<'SHELL'
            seq 100000 | php $SPINDLE run --xargs -kj1 echo | md5sum
            seq 100000 | xargs echo | md5sum
            SHELL);

        [$ours, $ofXargs] = explode("\n", $process->getOutput());
        self::assertSame($ofXargs, $ours, $process->getErrorOutput());
    }

    public function testAShellLineHasAsManyValuesAsTheSystemAccepts(): void
    {
        foreach (['-m', '-X', '--xargs'] as $option) {
            $process = $this->shell("seq 30000 | (ulimit -s 512; php \$SPINDLE run -j1 {$option} 'echo {}') | wc -w");

            self::assertOutcome(0, "30000\n", $process);
        }
    }

    public function testACommandMayHaveSixMebibytesIfTheStackHasNoLimit(): void
    {
        $process = $this->shell(<<<'SHELL'
            ulimit -s unlimited
            seq 100000 400000 | php $SPINDLE run -n 1000000 -j1 sh -c 'echo $#' name
            SHELL);

        self::assertOutcome(0, "300001\n", $process);
    }

    public function testAValueThatNeedsMoreThan128KiBAloneHasItsOwnCommand(): void
    {
        $long = str_repeat('x', 131_060);
        $command = ['-Xkj1', 'sh', '-c', 'echo $# ${#1}', 'a name of several bytes'];

        self::assertOutcome(0, "2 1\n1 131060\n1 1\n", $this->spindle($command, "a\nb\n{$long}\nc\n"));
        self::assertSame(255, $this->spindle(['-s', '131072', ...$command], "{$long}\n")->getExitCode());
    }

    public function testAMillionValuesNeedNoMoreMemoryThanAFewCommands(): void
    {
        // The peaks of resident memory of `spindle run` and its launcher, in KiB, with the number of arguments.
        $this->file('peaks', <<<'SHELL'
            read -r _ _ _ parent _ </proc/$PPID/stat
            sed -n 's/^VmHWM:[^0-9]*\([0-9]*\).*/\1/p' /proc/$parent/status /proc/$PPID/status | paste -sd ' '
            echo $#
            SHELL);
        $peaks = [];
        foreach ([10_000, 1_000_000] as $count) {
            $output = $this->shell("seq {$count} | php \$SPINDLE run -Xk -j2 sh ./peaks")->getOutput();
            preg_match_all('/^(\d+) (\d+)\n(\d+)$/m', $output, $jobs);
            self::assertSame($count, array_sum(array_map(intval(...), $jobs[3])), 'All values are arguments');
            $peaks[] = [max(0, ...array_map(intval(...), $jobs[1])), max(0, ...array_map(intval(...), $jobs[2]))];
        }

        self::assertLessThan($peaks[0][0] + self::MAX_GROWTH_KIBIBYTES, $peaks[1][0], 'The process');
        self::assertLessThan($peaks[0][1] + self::MAX_GROWTH_KIBIBYTES, $peaks[1][1], 'The launcher');
    }

    public function testWordsMayFollowTheValues(): void
    {
        self::assertOutcome(
            0,
            "[1][a][b c][][z]\n",
            $this->spindle(['-X', '-j1', 'printf', '[%s][%s][%s][%s][%s]\n', '{#}', '{}', 'z'], "a\nb c\n\n"),
        );
        self::assertOutcome(0, "a\nb\n", $this->spindle(['-X', '-j1', '{}'], "printf\n%s\\n\na\nb\n"));
    }

    public function testAnInputMayBeOneValueOrEmptyOrHaveNoEnd(): void
    {
        $command = ['-X', '-j1', 'printf', '[%s]'];

        self::assertOutcome(0, '[a]', $this->spindle($command, "a\n"));
        self::assertOutcome(0, '[a][b]', $this->spindle($command, "a\nb"));
        self::assertOutcome(0, '[][]', $this->spindle($command, "\n\n"));
        self::assertOutcome(0, "[a\nb][]", $this->spindle(['-0', ...$command], "a\nb\0\0"));
        self::assertOutcome(0, "[a\nb][]", $this->spindle([...$command, ':::', "a\nb", '']));
        self::assertOutcome(0, '', $this->spindle($command, ''));
    }

    public function testNumberAndSizeAreLimited(): void
    {
        $input = "1\n22\n333\n4444\n5\n";

        self::assertOutcome(0, "1 22\n333 4444\n5\n", $this->spindle(['-kn2', 'echo'], $input));
        self::assertOutcome(0, "1 22\n333\n4444\n5\n", $this->spindle(['-kXj1', '-s', '10', 'echo'], $input));
        self::assertOutcome(0, "1 22\n333 4444\n5\n", $this->spindle(['-kXj1', '-n2', '-s', '20', 'echo'], $input));
        self::assertOutcome(
            255,
            "1\n22\n333\n",
            $this->spindle(['-kXj1', '-s', '9', 'echo'], $input),
            'spindle: option --max-chars: input 4 makes the command 10 bytes long, and the limit is 9;'
                . " give a larger limit or a shorter input\n",
        );
    }

    public function testTheSizeOfARepeatedWordIncludesAllThatIsInsertedIntoIt(): void
    {
        $values = implode("\n", range(1_000_000, 1_030_000)) . "\n";
        foreach ([['-X', 'echo {#}{}'], ['-N', '12000', 'echo {1}{}'], ['-X', 'echo', '{#}{}']] as $arguments) {
            $process = $this->spindle(['-j2', ...$arguments], $values);

            self::assertSame([0, ''], [$process->getExitCode(), $process->getErrorOutput()]);
            self::assertSame(30_001, str_word_count($process->getOutput(), 0, '0123456789'));
        }
        $lines = $this->spindle(['-Xk', '-s', '60', '--dry-run', 'echo', 'xxx{#}{}'], $values)->getOutput();
        self::assertLessThan(60, max(array_map(\strlen(...), explode("\n", $lines))));
    }

    public function testADryRunDividesTheLastValuesAsTheRunDoes(): void
    {
        foreach (['0', '2'] as $jobs) {
            $lines = $this->spindle(['-Xk', '-j', $jobs, '--dry-run', 'echo'], "1\n2\n3\n")->getOutput();
            $run = $this->spindle(['-Xk', '-j', $jobs, 'echo'], "1\n2\n3\n")->getOutput();

            self::assertSame(preg_replace('/^/m', 'echo ', trim($run)) . "\n", $lines);
        }
    }

    public function testAValueWithNulFailsOnlyItsJob(): void
    {
        $process = $this->spindle(['-kXj1', '-s', '14', 'echo'], "1\n2\n3\n4\0x\n5\n6\n7\n8\n9\n");

        self::assertOutcome(
            1,
            "1 2 3\n7 8 9\n",
            $process,
            "spindle: job 2: Argument 1 of 'echo' contains a NUL byte at offset 1, which the system cannot pass to a"
                . " program\n",
        );
    }

    public function testAValueThatIsTooLongForTheSystemFailsOnlyItsJob(): void
    {
        $long = str_repeat('x', 1 << 17);
        $process = $this->spindle(['-kn2', 'echo'], "a\nb\nc\n{$long}\nd\n");

        self::assertSame([1, "a b\nd\n"], [$process->getExitCode(), $process->getOutput()]);
        self::assertStringContainsString('Argument list too long', $process->getErrorOutput());
    }

    public function testTheJobLogAndTheDryRunHaveAllValues(): void
    {
        $command = ['-kn2', 'sh', '-c', 'exit $#', 'sh'];

        self::assertOutcome(0, "sh -c 'exit \$#' sh a 'b c'\nsh -c 'exit \$#' sh ''\n", $this->spindle(
            ['--dry-run', ...$command],
            "a\nb c\n\n",
        ));
        self::assertOutcome(2, '', $this->spindle(['--joblog', 'log', ...$command], "a\nb c\n\n"));
        preg_match_all('/\t([^\t\n]+)$/m', (string) file_get_contents($this->path('log')), $lines);
        self::assertSame(['Command', "sh -c 'exit \$#' sh a 'b c'", "sh -c 'exit \$#' sh ''"], $lines[1]);
        $resumed = ['--joblog', 'log', '--resume-failed', ...$command];
        self::assertOutcome(2, '', $this->spindle($resumed, "a\nb c\n\n"));
        self::assertCount(5, (array) file($this->path('log')));
    }
}

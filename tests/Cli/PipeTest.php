<?php

declare(strict_types=1);

namespace Spindle\Tests\Cli;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\TestWith;
use Spindle\Tests\Eventually;
use Symfony\Component\Process\Process;

/** Blocks of standard input and parts of files: faults, refused options, and what is left behind. */
final class PipeTest extends SpindleCommandTestCase
{
    public function testAJobReadsAFileThatIsRemovedAfterwards(): void
    {
        $process = $this->shell(
            'mkdir t; seq 9 | TMPDIR=$PWD/t $SPINDLE run -k --pipe -N3'
            . ' "ls t | wc -l; cat; readlink /proc/self/fd/0"; ls t',
        );

        self::assertMatchesRegularExpression(
            "~^(?:[123]\n\d\n\d\n\d\n/\S+/t/spindle-[0-9a-f]{24}\n){3}\$~D",
            $process->getOutput(),
        );
    }

    #[TestWith(['--halt now,fail=1 "exit 1"'])]
    #[TestWith(['--halt soon,fail=1 "exit 1"'])]
    #[TestWith(['--timeout 0.1 "sleep 5"'])]
    #[TestWith(['--round-robin "exit 1"'])]
    #[TestWith(['--cat "exit 1"'])]
    #[TestWith(['-k --retries 1 /nonexistent/x'])]
    public function testNoFileIsLeft(string $options): void
    {
        $process = $this->shell(
            'mkdir t; seq 30000 | TMPDIR=$PWD/t $SPINDLE run -j2 --pipe --block 50k ' . $options . ' >/dev/null; ls t',
        );

        self::assertSame('', $process->getOutput());
    }

    public function testNoFileIsLeftWhenTheReaderOfTheOutputEnds(): void
    {
        $process = $this->shell(
            'mkdir t; seq 500000 2>/dev/null | TMPDIR=$PWD/t $SPINDLE run -j2 --pipe --block 100k cat | true; ls t',
        );

        self::assertSame('', $process->getOutput());
    }

    #[TestWith(['cat'])]
    #[TestWith(['--cat cat'])]
    #[TestWith(['--tee -j1 "cat; :" ::: x'])]
    public function testAJobInAnotherFolderReadsItsBlock(string $options): void
    {
        $process = $this->shell("mkdir t; echo a | TMPDIR=t \$SPINDLE run --pipe --wd / {$options}; ls t");

        self::assertOutcome(0, "a\n", $process);
    }

    public function testABlockAboveTheLimitOfFileSizesIsReported(): void
    {
        $process = $this->shell('mkdir t; ulimit -f 20; seq 30000 | TMPDIR=t $SPINDLE run --pipe wc -l 2>&1; ls t');

        self::assertSame(
            "spindle: can't write a temporary file in 't': File too large\n",
            $process->getOutput(),
        );
    }

    public function testADryRunWritesNoFile(): void
    {
        $process = $this->shell('printf "a\nb\n" | TMPDIR=/nonexistent $SPINDLE run --pipe -N1 --cat --dry-run wc -l');

        self::assertOutcome(0, "wc -l \$PARALLEL_TMP\nwc -l \$PARALLEL_TMP\n", $process);
    }

    public function testAKilledRunLeavesNoFile(): void
    {
        $process = $this->startedBlocks();
        $hasFile = glob($this->path('t/*')) !== [];

        $process->signal(\SIGKILL);

        self::assertTrue($hasFile);
        Eventually::holdsByItself(fn(): bool => glob($this->path('t/*')) === [], 'no file is left', 5.0);
    }

    public function testAFatalErrorLeavesNoFile(): void
    {
        $code = 'pcntl_async_signals(true); pcntl_signal(SIGALRM, fn() => trigger_error("fatal", E_USER_ERROR));';
        $prepended = $this->file('prepended.php', "<?php {$code}");
        $process = $this->startedBlocks('-d', "auto_prepend_file={$prepended}");
        $hasFile = glob($this->path('t/*')) !== [];

        $process->signal(\SIGALRM);
        $process->wait();

        self::assertSame([true, 255, []], [$hasFile, $process->getExitCode(), glob($this->path('t/*'))]);
    }

    public function testADryRunPrintsTheJobsThatRunAtOnce(): void
    {
        $process = $this->shell('seq 9 | $SPINDLE run --pipe --round-robin --block 2 -j3 --dry-run cat');

        self::assertOutcome(0, "cat\ncat\ncat\n", $process);
    }

    public function testBlocksAreReadDuringADelay(): void
    {
        $process = $this->shell(
            '(seq 4; until [ -e started2 ]; do sleep 0.05; done; seq 5 8) | $SPINDLE run --delay 0.3 -j2 --pipe'
            . ' --round-robin --block 2 "touch started{#}; cat" | sort',
        );

        self::assertOutcome(0, "1\n2\n3\n4\n5\n6\n7\n8\n", $process);
    }

    public function testABlockReachesARunningJobWhenFewerJobsMayRun(): void
    {
        $process = $this->shell(
            'echo 9 > jobs; seq 20 | $SPINDLE run --delay 0.3 -j jobs --pipe --round-robin --block 2'
            . ' "[ {#} = 1 ] && echo 1 > jobs; cat" | sort -n',
        );

        self::assertOutcome(0, implode("\n", range(1, 20)) . "\n", $process);
    }

    public function testAFolderForFilesThatCannotBeWrittenIsReported(): void
    {
        $process = $this->shell('echo a | TMPDIR=/nonexistent $SPINDLE run --pipe cat');

        self::assertOutcome(
            254,
            '',
            $process,
            "spindle: can't write a temporary file in '/nonexistent': No such file or directory\n",
        );
    }

    public function testTheNameOfTheFolderIsQuoted(): void
    {
        $process = $this->shell(
            'd="t \';\$x"; mkdir "$d"; export TMPDIR="$PWD/$d"; for o in cat "cat; true"; do'
            . ' echo a | $SPINDLE run --pipe "$o"; echo b | $SPINDLE run --pipe --cat "$o"; done',
        );

        // With --cat, {} is added to the end of the line.
        self::assertSame("a\nb\na\n", $process->getOutput());
    }

    public function testTheNameOfTheFolderMayHaveAnyBytes(): void
    {
        $process = $this->shell(<<<'SHELL'
            folder=$PWD/$(printf 't\351mp'); mkdir "$folder"
            seq 3 | LC_ALL=C.UTF-8 TMPDIR=$folder $SPINDLE run --pipe --tee -k 'grep -c {}' ::: 1
            SHELL);

        self::assertOutcome(0, "1\n", $process);
    }

    public function testMemoryDoesNotGrowWithTheInput(): void
    {
        $process = $this->shell(
            'yes 0123456789 2>/dev/null | head -c 40000000 | '
            . escapeshellarg(\PHP_BINARY) . ' -d memory_limit=20M $SPINDLE run'
            . ' -j2 --pipe "cat | wc -c" | awk \'{s+=$1} END {print s}\'',
        );

        self::assertOutcome(0, "40000000\n", $process);
    }

    public function testABlockMayBeLargerThanTheMemoryLimit(): void
    {
        $process = $this->shell(
            'yes 0123456789 2>/dev/null | head -c 77000000 | '
            . escapeshellarg(\PHP_BINARY) . ' -d memory_limit=32M $SPINDLE run -k --pipe --block 35M "cat | wc -c"',
        );

        self::assertOutcome(0, "36700158\n36700158\n3599684\n", $process);
    }

    public function testTheBlocksOfManyJobsOfRoundRobinFitIntoTheMemoryLimit(): void
    {
        $job = ': >s{#}; until [ $(ls s* | wc -l) = 40 ]; do sleep 0.05; done; wc -c';
        $process = $this->shell(
            'mkdir t; yes 0123456789 2>/dev/null | head -c 77000000 | TMPDIR=$PWD/t ' . escapeshellarg(\PHP_BINARY)
            . ' -d memory_limit=48M $SPINDLE run -j40 --pipe --round-robin --block 1M ' . escapeshellarg($job)
            . ' | awk \'{s+=$1} END {print s}\'; ls t',
        );

        self::assertOutcome(0, "77000000\n", $process);
    }

    public function testAFileOfUnknownSizeHasNoParts(): void
    {
        $process = $this->shell('$SPINDLE run --pipe-part -a /proc/self/stat wc -c');

        self::assertOutcome(
            255,
            '',
            $process,
            "spindle: option --pipe-part: '/proc/self/stat' is not a file whose parts can be read; use --pipe with"
                . " < FILE\n",
        );
    }

    public function testARegularExpressionNeedsNoIniSet(): void
    {
        $process = $this->shell(
            'printf "a\nb\n" | ' . escapeshellarg(\PHP_BINARY)
            . ' -d disable_functions=ini_set $SPINDLE run --pipe --regexp --recend "\n" cat',
        );

        self::assertOutcome(0, "a\nb\n", $process);
    }

    #[TestWith(['--block 35M --regexp'])]
    #[TestWith(['--block 35M --round-robin'])]
    #[TestWith(['--block 35M -N1'])]
    #[TestWith(['--recend x'])]
    public function testABlockThatDoesNotFitIntoTheMemoryIsReported(string $options): void
    {
        $process = $this->shell(
            '(yes 0123456789 | head -c 40000000) 2>/dev/null | '
            . escapeshellarg(\PHP_BINARY) . " -d memory_limit=32M \$SPINDLE run --pipe {$options} 'cat | wc -c'",
        );

        self::assertSame(['', 255], [$process->getOutput(), $process->getExitCode()]);
        self::assertMatchesRegularExpression(
            '/^spindle: option --block: a block, record or group of \d+ bytes or more does not fit into the free'
            . ' memory: \d+ of 33554432 bytes \(memory_limit\) are in use; give a smaller --block, another --recend, or'
            . ' a higher limit \(php -d memory_limit=2G\)\n$/D',
            $process->getErrorOutput(),
        );
    }

    #[TestWith(['--block 100k'])]
    #[TestWith(['--block 100k --round-robin'])]
    #[TestWith(['-N 20000'])]
    #[TestWith(['-L 7 --block 333k'])]
    #[TestWith(['--regexp --recend "7\n" --block 200k'])]
    #[TestWith(['--regexp --recend "[^0-9\n]" --block 200k'])]
    public function testEachByteIsInOneBlock(string $options): void
    {
        $process = $this->shell(
            "seq 300000 | \$SPINDLE run -j3 --pipe {$options} cat | sort -n | cksum; seq 300000 | cksum",
        );

        $sums = explode("\n", $process->getOutput());
        self::assertSame($sums[1], $sums[0], $process->getErrorOutput());
    }

    public function testARecordMayBeLongerThanABlock(): void
    {
        $process = $this->shell(
            '(echo a; head -c 3000000 /dev/zero; echo; echo b) | $SPINDLE run -k --pipe --block 1000 "cat | wc -c"',
        );

        self::assertSame(3000005, array_sum(explode("\n", trim($process->getOutput()))));
        self::assertSame('', $process->getErrorOutput());
    }

    #[TestWith(['--block 50k'])]
    #[TestWith(['--block 50k --round-robin'])]
    public function testAJobThatDoesNotReadItsBlockHasNotFailed(string $options): void
    {
        $process = $this->shell("seq 300000 | \$SPINDLE run -j2 --pipe {$options} true; echo \$?");

        self::assertSame("0\n", $process->getOutput());
    }

    public function testARetriedJobReadsItsBlockAgain(): void
    {
        $process = $this->shell(
            'printf "a\nb\n" | $SPINDLE run -j1 --retries 2 --pipe -N1 "cat >> got; exit 1"; sort got | uniq -c',
        );

        self::assertMatchesRegularExpression('/^ *([23]) a\n *\1 b\n$/D', $process->getOutput());
    }

    public function testTheJobLogHasTheCommandAndNoNameOfAFile(): void
    {
        $this->shell('printf "a\nb\n" | $SPINDLE run -k --joblog log --pipe -N1 "cat; exit {#}"');
        $this->shell('printf "a\n" | $SPINDLE run -k --joblog files --pipe --cat wc');

        self::assertMatchesRegularExpression(
            '/\n1\t:\t.*\t1\t0\tcat; exit 1\n2\t.*\t2\t0\tcat; exit 2\n$/',
            $this->read('log'),
        );
        self::assertStringEndsWith("\t0\t0\twc \$PARALLEL_TMP\n", $this->read('files'));
    }

    public function testTheInputIsNotReadToItsEndAfterAHalt(): void
    {
        $process = $this->shell(
            'yes 2>/dev/null | $SPINDLE run -j2 --pipe --block 10k --halt soon,done=3 true; echo ${PIPESTATUS[1]}',
        );

        self::assertSame("0\n", $process->getOutput());
    }

    public function testAnInterruptEndsTheInput(): void
    {
        posix_mkfifo($this->path('endless'), 0o600);
        $process = new Process(
            [
                'sh', '-c', 'yes >endless 2>/dev/null & exec "$@" <endless', 'sh', Program::path(), 'run', '--pipe',
                '--round-robin', '-j2', '--block', '10k', 'touch started; cat | tail -n1; echo end',
            ],
            $this->path(),
            [self::MARK => $this->mark],
        );
        $process->start();
        $this->waitForFile('started');

        $process->signal(\SIGINT);

        self::assertSame(130, $process->wait());
        self::assertStringEndsWith("y\nend\n", $process->getOutput());
    }

    public function testAPartIsReadFromAFileWithAnyName(): void
    {
        $this->file("-a '\$x\"", "1\n2\n3\n");
        $process = $this->spindle(['-k', '--pipe-part', '-a', "-a '\$x\"", '--block', '1', 'cat']);

        self::assertOutcome(0, "1\n2\n3\n", $process);
    }

    public function testAPartReachesAProgramWithItsArguments(): void
    {
        $this->file('lines', "a\nb\nc\n");
        $process = $this->spindle(
            ['-k', '--pipe-part', '--block', '-1', '-j1', 'sed', 's/^/"$HOME" /', '::::', 'lines'],
        );

        self::assertOutcome(0, "\"\$HOME\" a\n\"\$HOME\" b\n\"\$HOME\" c\n", $process);
    }

    public function testAHeaderOfAnyBytesIsTheBeginningOfEachPart(): void
    {
        $header = str_repeat("\0\1%s\\n", 40_000) . "\n";
        $this->file('lines', "{$header}a\nb\n");
        $process = $this->spindle(['-k', '--pipe-part', '--header', ':', '--block', '1', '-a', 'lines', 'cat']);

        self::assertOutcome(0, "{$header}a\n{$header}b\n", $process);
    }

    /** @return iterable<string, array{string, int}> option, lines of the header */
    public static function longHeaders(): iterable
    {
        yield 'a number of lines' => ['20000', 20_000];
        yield 'a regular expression' => ['(#.*\n)*', 80_000];
    }

    #[DataProvider('longHeaders')]
    public function testAHeaderMayHaveThousandsOfLines(string $option, int $count): void
    {
        $this->file('lines', str_repeat("#0123456\n", $count) . "a\nb\n");
        foreach (['--pipe -N1', '--pipe-part --block 1 -a lines'] as $options) {
            $process = $this->shell("\$SPINDLE run --header '{$option}' {$options} wc -l < lines");

            self::assertOutcome(0, str_repeat($count + 1 . "\n", 2), $process);
        }
    }

    public function testALongHeaderIsRefusedBeforeAllOfItIsRead(): void
    {
        $process = $this->shell('ulimit -v 1000000; $SPINDLE run --pipe --header : "touch ran" < /dev/zero');

        $message = "spindle: option --header: a header of 1 line is longer than 16 MiB, the limit; give fewer lines\n";
        self::assertOutcome(255, '', $process, $message);
        self::assertFileDoesNotExist($this->path('ran'));
    }

    public function testNoPartIsReadByABuiltinOfTheShell(): void
    {
        $this->file('lines', "a\nb\n");
        $this->spindle(['--pipe-part', '-a', 'lines', 'eval', 'touch ran']);

        self::assertFileDoesNotExist($this->path('ran'));
    }

    /** @return iterable<string, array{list<string>}> options and command */
    public static function slowJobs(): iterable
    {
        yield 'a line for the shell' => [['--pipe', 'sleep 60']];
        yield 'a program' => [['--pipe', 'sleep', '60']];
        yield 'a part of a file' => [['--pipe-part', '-a', 'lines', '--block', '-1', 'sleep', '60']];
    }

    /** @param list<string> $arguments */
    #[DataProvider('slowJobs')]
    public function testAFailureHasTheCommandThatWasGiven(array $arguments): void
    {
        $this->file('lines', "a\n");
        $process = $this->spindle(['-j1', '--timeout', '0.2', ...$arguments], "a\n");

        self::assertMatchesRegularExpression(
            '/^spindle: sleep 60: timed out \(0.2 s\) after \d+\.\d{3} s\n$/D',
            $process->getErrorOutput(),
        );
    }

    public function testAJobFailsIfItsFileHasVanished(): void
    {
        $this->file('lines', "a\nb\n");
        $process = $this->spindle(['-j1', '--pipe-part', '--block', '1', '-a', 'lines', 'cat; rm -f lines']);

        self::assertSame([1, "a\n"], [$process->getExitCode(), $process->getOutput()]);
        self::assertStringContainsString('lines', $process->getErrorOutput());
    }

    /** @return iterable<string, array{string, string}> what the first job does, and how the message names it */
    public static function changes(): iterable
    {
        yield 'another file' => ['mv other lines', 'was replaced'];
        yield 'fewer bytes' => ['printf a >lines', 'has become shorter'];
        yield 'other bytes' => ['printf "x\ny\n" >lines; touch -d 2001-01-01 lines', 'was changed'];
    }

    #[DataProvider('changes')]
    public function testARunEndsIfItsFileChanges(string $command, string $change): void
    {
        $this->file('lines', "a\nb\n");
        $this->file('other', "c\nd\n");
        $options = ['-j1', '--joblog', 'log', '--pipe-part', '--block', '1', '-a', 'lines'];
        // Only the first job changes the file: the second one may have started when the change is looked for.
        $process = $this->spindle([...$options, "cat; [ {#} != 1 ] || { {$command}; }"]);

        self::assertSame(255, $process->getExitCode());
        self::assertStringEndsWith(
            "lines' {$change} while jobs read it. Job 1 and jobs that ran at the same time may have read other bytes,"
                . " and count as not run; run the command again, with a file that does not change\n",
            $process->getErrorOutput(),
        );
        self::assertCount(1, (array) file($this->path('log')), 'No job is in the log');
    }

    public function testAFileMayGrowWhileJobsReadIt(): void
    {
        $this->file('lines', "a\nb\n");
        $process = $this->spindle(['-kj1', '--pipe-part', '--block', '1', '-a', 'lines', 'cat; echo more >>lines']);

        self::assertOutcome(0, "a\nb\n", $process);
    }

    /** @return iterable<string, array{string, string}> options, and the blocks of the second and the third job */
    public static function failedBlocks(): iterable
    {
        yield 'records' => [
            '--pipe -N2 < lines', 'bytes 6 to 10 of standard input', 'bytes 11 to 12 of standard input',
        ];
        yield 'after a header' => [
            '--pipe --header : -N1 < lines', 'bytes 6 to 8 of standard input', 'bytes 9 to 10 of standard input',
        ];
        yield 'without separators' => [
            '--pipe --rrs -N2 < lines', 'bytes 6 to 10 of standard input', 'bytes 11 to 12 of standard input',
        ];
        yield 'parts' => ['--pipe-part --block 4 -a lines', "bytes 6 to 10 of '%s'", "bytes 11 to 12 of '%s'"];
    }

    #[DataProvider('failedBlocks')]
    public function testAFailedJobIsNamedWithItsBlock(string $options, string $second, string $third): void
    {
        $this->file('lines', "1\n22\n33\n4\n5\n");
        $errors = $this->shell("\$SPINDLE run -j1 --progress plain {$options} 'exit {#}'")->getErrorOutput();

        foreach ([2 => $second, 3 => $third] as $number => $block) {
            $block = \sprintf($block, $this->path('lines'));
            self::assertStringContainsString("spindle: job {$number} ({$block}) failed: exit code {$number}", $errors);
        }
    }

    public function testAJobThatDoesNotReadItsPartHasNotFailed(): void
    {
        $this->file('lines', str_repeat("0123456789\n", 100_000));

        self::assertOutcome(0, '', $this->spindle(['--pipe-part', '--block', '300k', '-a', 'lines', 'true']));
    }

    public function testAJobOfRoundRobinThatEndsEarlyLeavesTheRestToOthers(): void
    {
        $process = $this->shell(
            'seq 200000 | $SPINDLE run -j2 --pipe --round-robin --block 10k "[ {#} = 1 ] || wc -l; true"',
        );

        self::assertGreaterThan(100_000, (int) $process->getOutput());
    }

    public function testAHaltOfRoundRobinBeforeAllJobsExistEndsTheInput(): void
    {
        $process = $this->shell(
            'seq 100 | $SPINDLE run --pipe --round-robin --block 20 -j3 --delay 1 --halt soon,fail=1'
                . ' "[ {#} = 2 ] && exit 3; cat >/dev/null; echo end {#}"',
            10.0,
        );

        self::assertSame([3, "end 1\n"], [$process->getExitCode(), $process->getOutput()]);
    }

    public function testAnInterruptOfRoundRobinBeforeAllJobsExistEndsTheInput(): void
    {
        $arguments = ['--pipe', '--round-robin', '--block', '20', '-j3', '--delay', '60'];
        $process = $this->start([...$arguments, 'touch started; cat >/dev/null; echo end'], str_repeat("line\n", 100));
        $this->waitForFile('started');

        $process->signal(\SIGINT);

        self::assertSame([130, "end\n"], [$process->wait(), $process->getOutput()]);
    }

    public function testAFailureOfTheInputEndsTheJobsOfRoundRobin(): void
    {
        $process = $this->shell(
            '{ seq -f "%040.0f" 2; until [ -e started ]; do sleep 0.05; done;'
                . ' head -c 100000 /dev/zero | tr "\0" a; echo "!"; } | $SPINDLE run --pipe --round-robin --regexp'
                . ' --recend "(?:(a|b)*c)|\n" --block 30 -j4 "touch started; cat >/dev/null"',
            10.0,
        );

        self::assertSame(255, $process->getExitCode());
        self::assertStringContainsString("can't find the records in a block", $process->getErrorOutput());
    }

    /** @param list<string> $options */
    #[DataProvider('refused')]
    public function testIsRefusedBeforeAJobStarts(array $options, string $message): void
    {
        $process = $this->spindle([...$options, 'touch ran'], "a\nb\n");

        self::assertOutcome(255, '', $process, "spindle: {$message}\n");
        self::assertFileDoesNotExist($this->path('ran'));
    }

    /** @return \Generator<string, array{list<string>, string}> */
    public static function refused(): \Generator
    {
        $blockForm = 'give a number of bytes below 2G; K, M and G stand for powers of 1024; k, m and g for powers'
            . ' of 1000';
        foreach (['abc', '0', '-1', '2G', '99999999999999999999', '1e3', '0.1', '1MB', ' 1'] as $size) {
            yield "--block {$size}" => [
                ['--pipe', "--block={$size}"], "option --block: '{$size}' is not allowed; {$blockForm}",
            ];
        }
        yield 'an empty --block' => [['--pipe', '--block='], 'option --block: the value is empty; give a value'];
        foreach (['-N' => '--args', '-n' => '--max-args', '-L' => '--max-lines'] as $letter => $name) {
            foreach (['0', 'x', '-1', '1.5', '9999999999'] as $number) {
                yield "{$letter} {$number}" => [
                    ['--pipe', "{$letter}{$number}"],
                    "option {$name}: '{$number}' is not allowed; give a number of records, from 1",
                ];
            }
        }
        yield 'a broken pattern' => [
            ['--pipe', '--regexp', '--recend', '('],
            "option --recend: '(' is not allowed; give a regular expression, or leave out --regexp",
        ];
        $without = 'give a regular expression without \K';
        foreach (['\K', '(?<=2)\K', '\n\K', '\\\\\\\\\K'] as $pattern) {
            yield "--recend {$pattern}" => [
                ['--pipe', '-N1', '--regexp', '--recend', $pattern],
                "option --recend: '{$pattern}' is not allowed; {$without}",
            ];
        }
        yield 'a start that moves' => [
            ['--pipe', '-N1', '--regexp', '--recstart', '\K2'],
            "option --recstart: '\K2' is not allowed; {$without}",
        ];
        yield 'a header that moves' => [
            ['--pipe', '--header', '#.*\K\n'],
            'option --header: \'#.*\K\n\' is not allowed; ' . $without,
        ];
        yield 'a negative number of lines' => [
            ['--pipe', '--header', '-1'],
            "option --header: '-1' is not allowed; give a colon for one line, a number of lines, or a regular"
                . ' expression',
        ];
        yield 'a broken header' => [
            ['--pipe', '--header', '['],
            "option --header: '[' is not allowed; give a colon for one line, a number of lines, or a regular"
                . ' expression',
        ];
        yield '--cat alone' => [['--cat'], 'option --cat: give --pipe or --pipe-part too'];
        yield '--recend alone' => [['--recend', ','], 'option --recend: give --pipe or --pipe-part too'];
        yield 'both' => [
            ['--pipe', '--pipe-part'],
            "option --pipe-part: can't be combined with --pipe, which reads standard input and not files",
        ];
        foreach (['--cat', '--fifo'] as $option) {
            yield "--round-robin {$option}" => [
                ['--pipe', '--round-robin', $option],
                "option {$option}: can't be combined with --round-robin: a job has no file for its blocks",
            ];
        }
        yield 'parts of standard input' => [
            ['--pipe-part'], 'option --pipe-part: give a file, as -a FILE or :::: FILE',
        ];
        yield 'both numbers' => [['--pipe', '-n1', '-N1'], 'option --args: give only one of -n and -N'];
        yield 'lines and texts' => [
            ['--pipe', '-L1', '--recend', 'x'],
            'option --max-lines: lines form a record; remove --recstart and --recend',
        ];
        yield '-0' => [
            ['--pipe', '-0'],
            "option --null: can't be combined with --pipe: to end records with NUL, give --recend '\\0'",
        ];
        yield '-X' => [['--pipe', '-X'], "option --each-word: can't be combined with --pipe: a job has one block"];
        foreach (['0', '-1', 'name', '1 s/x//', '9999999'] as $column) {
            yield "--group-by {$column}" => [
                ['--pipe', '--group-by', $column],
                "option --group-by: '{$column}' is not allowed; give the number of a column, from 1",
            ];
        }
        yield '--group-by without a column' => [
            ['--pipe', '--group-by='], 'option --group-by: the value is empty; give a value',
        ];
        yield '--group-by without --pipe' => [
            ['--group-by', '1'], 'option --group-by: give --pipe or --pipe-part too',
        ];
        yield '--group-by with --recend' => [
            ['--pipe', '--group-by', '1', '--recend', 'x'],
            "option --recend: can't be combined with --group-by: a record is a group of lines",
        ];
        yield '--group-by with a wrong separator' => [
            ['--pipe', '--group-by', '1', '--colsep', '['],
            "option --colsep: '[' is not allowed; give a regular expression, such as , or \\t"
                . ' (missing terminating ] for character class at offset 1)',
        ];
        yield 'columns' => [
            ['--pipe', '--colsep', ','],
            "option --colsep: can't be combined with --pipe: a block has no columns without --group-by",
        ];
        yield '--tee without --pipe' => [['--tee'], 'option --tee: give --pipe too, and < FILE to read a file'];
        yield '--tee without arguments' => [
            ['--pipe', '--tee'],
            'option --tee: standard input is the data of all jobs; give the arguments of the jobs after :::',
        ];
        yield '--tee with arguments from standard input' => [
            ['--pipe', '--tee', '-a', '/dev/stdin'],
            'option --tee: standard input is the data of all jobs; give the arguments of the jobs after :::',
        ];
        yield '--tee with blocks' => [
            ['--pipe', '--tee', '--block', '1k'], "option --block: can't be combined with --tee: there are no blocks",
        ];
        foreach (['--resume', '--resume-failed'] as $option) {
            yield "--round-robin {$option}" => [
                ['--pipe', '--round-robin', $option, '--joblog', 'log'],
                "option {$option}: can't be combined with --round-robin: a job gets other blocks in each run",
            ];
        }
    }

    public function testArgumentsAreRefused(): void
    {
        self::assertOutcome(
            255,
            '',
            $this->spindle(['--pipe', 'cat', ':::', 'a']),
            "spindle: option --pipe: blocks are read from standard input; remove the list of arguments\n",
        );
    }

    public function testALineWhoseColumnsCannotBeFoundIsNotPutIntoAGroup(): void
    {
        $line = str_repeat('a', 40) . 'b';
        $options = ['--pipe', '-N1', '--group-by', '2', '--colsep', '(?:a+)+[cd]', 'cat'];

        self::assertOutcome(
            255,
            '',
            $this->spindle($options, "a\n{$line}\n"),
            "spindle: option --colsep: can't split '{$line}': Backtrack limit exhausted\n",
        );
    }

    /** Starts a run with files of blocks in the folder `t`, and waits until a job runs. */
    private function startedBlocks(string ...$phpOptions): Process
    {
        mkdir($this->path('t'));
        $process = new Process(
            [
                \PHP_BINARY, ...array_values($phpOptions), Program::path(), 'run', '-j2', '--pipe', '-N1',
                'touch started; sleep 60',
            ],
            $this->path(),
            [self::MARK => $this->mark, 'TMPDIR' => $this->path('t')],
            "a\nb\nc\n",
        );
        $process->start();
        $this->waitForFile('started');

        return $process;
    }

    private function read(string $name): string
    {
        return (string) file_get_contents($this->path($name));
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Tests\Cli;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\TestWith;
use Spindle\Tests\Eventually;
use Spindle\Tests\Scale;
use Symfony\Component\Process\InputStream;

final class RunCommandTest extends SpindleCommandTestCase
{
    #[TestWith(['ini_set'])]
    #[TestWith(['putenv'])]
    public function testFunctionsThatAreNotEssentialMayBeDisabled(string $function): void
    {
        $process = $this->shell(\PHP_BINARY . " -d disable_functions={$function} \$SPINDLE run echo ::: a");

        self::assertOutcome(0, "a\n", $process, '');
    }

    #[TestWith(['sem --fg true; $SPINDLE sem --fg echo a'])]
    #[TestWith(['run --progress=plain --joblog log echo ::: a'])]
    public function testAnErrorHandlerOfThePrependedFileIsNotCalled(string $arguments): void
    {
        $this->file('prepended.php', <<<'PHP'
            <?php
            set_error_handler(static fn(int $level, string $message): never => throw new ErrorException($message));
            PHP);
        $process = $this->shell(
            "export TMPDIR=\$PWD; SPINDLE='" . \PHP_BINARY . " -d auto_prepend_file=prepended.php '\$SPINDLE;"
                . " \$SPINDLE {$arguments} 2>&1",
        );

        self::assertSame(0, $process->getExitCode(), $process->getOutput());
        self::assertStringStartsWith("a\n", $process->getOutput());
    }

    public function testEachLineOfTheInputIsAnArgumentThatNoShellSees(): void
    {
        $process = $this->spindle(['-k', 'printf', '[%s]'], "a\n b  c \n\$(x)\n'\n\n*");

        self::assertOutcome(0, "[a][ b  c ][\$(x)]['][][*]", $process);
    }

    public function testASingleWordThatIsSpecialToAShellIsALineForIt(): void
    {
        $process = $this->spindle(['-k', 'printf "%s\n" {} | tr a-z A-Z', ':::', 'a b', "it's", '$HOME']);

        self::assertOutcome(0, "A B\nIT'S\n\$HOME\n", $process);
    }

    public function testAllCombinationsRunInARandomOrder(): void
    {
        $numbers = range(1, 40);
        $words = array_map(strval(...), $numbers);
        $outputs = [];
        foreach ([1, 2] as $run) {
            $process = $this->spindle(['-k', '--shuf', 'echo', '{#}', '{1}{2}', ':::', ...$words, ':::', 'a', '']);
            preg_match_all('/^(\d+) (.+)$/m', $process->getOutput(), $lines);
            $outputs[$run] = $lines[2];
            self::assertSame(array_map(strval(...), range(1, 80)), $lines[1]);
            sort($lines[2], \SORT_STRING);
            $expected = [...$words, ...array_map(static fn(string $word): string => "{$word}a", $words)];
            sort($expected, \SORT_STRING);
            self::assertSame($expected, $lines[2]);
        }
        self::assertNotSame($outputs[1], $outputs[2]);
    }

    /** @return iterable<string, array{string, string}> template, input */
    public static function injections(): iterable
    {
        yield 'in double quotes' => ['printf "%s" "{}"', '$(touch owned)'];
        yield 'in single quotes' => ["printf '%s' '{}'", "'; touch owned; '"];
        yield 'in both' => ["printf '%s' \"\"'{}'", "'\"`touch owned`"];
        yield 'in a command substitution' => ['printf "%s" $(printf "%s" {})', '$(touch${IFS}owned)'];
    }

    #[DataProvider('injections')]
    public function testNothingOfTheInputIsExecutedInQuotesEither(string $template, string $input): void
    {
        $expected = str_contains($template, '$(') ? preg_replace('/\s+/', '', $input) : $input;

        self::assertOutcome(0, (string) $expected, $this->spindle([$template, ':::', $input]));
        self::assertFileDoesNotExist($this->path('owned'));
    }

    public function testBlankLinesAreNoCommandsButCount(): void
    {
        self::assertOutcome(0, "a\nb\n", $this->spindle(['-k', '--joblog', 'log'], "echo a\n\n \t\necho b\n"));
        self::assertSame(['1', '4'], $this->column('log', 'Seq'));
        self::assertOutcome(0, '', $this->spindle(['--joblog', 'log', '--resume'], "echo a\n\n \t\necho b\n"));
        self::assertOutcome(
            0,
            '{"id":1,"status":0,"stdout":"","stderr":""}' . "\n",
            $this->spindle(['--jsonl'], '{"id":1,"cmd":"true"}' . "\n\r\n\n"),
        );
        self::assertOutcome(0, "echo a\n", $this->spindle(['--dry-run'], "\necho a\n"));
    }

    public function testWithoutACommandEachLineIsAShellCommand(): void
    {
        self::assertOutcome(1, "1\n2\n", $this->spindle(['-k'], "echo 1\nexit 3\necho 2 | cat"));
        self::assertOutcome(0, "1\n2\n", $this->spindle(['-k', ':::', 'echo 1', 'echo 2']));
    }

    public function testArgumentsTakeTheInputsPlace(): void
    {
        self::assertOutcome(0, "a\n-k\n", $this->spindle(['-kP2', 'echo', ':::', 'a', '-k'], "not read\n"));
        self::assertOutcome(0, '', $this->spindle(['echo', ':::']));
    }

    public function testOptionsOfTheProgramAreItsOwn(): void
    {
        self::assertOutcome(0, "-j x --tag a\n", $this->spindle(['echo', '-j', 'x', '--tag', ':::', 'a']));
        self::assertOutcome(0, "-- -k a\n", $this->spindle(['-j', '1', '--', 'echo', '--', '-k', ':::', 'a']));
    }

    public function testInputMayEndWithNulAndComeFromAFile(): void
    {
        $this->file('input', "a\nb\0c");

        self::assertOutcome(0, "[a\nb][c]", $this->spindle(['-k0', '-a', 'input', 'printf', '[%s]']));
        self::assertOutcome(0, '[a]', $this->spindle(['--null', '--arg-file=-', 'printf', '[%s]'], "a\0"));
        // As in GNU parallel, -d has precedence over -0.
        self::assertOutcome(0, '[a][b]', $this->spindle(['-k', '-d', ';', '-0', 'printf', '[%s]'], 'a;b;'));
    }

    public function testTheInputMayBeAFifo(): void
    {
        self::assertOutcome(0, "a\nb\n", $this->shell('$SPINDLE run -k -a <(echo a; echo b) echo'));
    }

    public function testAFileOfADescriptorIsReadFromItsStart(): void
    {
        $this->file('input', "a\nb\n");
        $run = '$SPINDLE run -k -a /dev/fd/3 echo';

        self::assertOutcome(
            0,
            "a\nb\na\nb\na\n",
            $this->shell("{ {$run}; {$run}; head -n 1 <&3; } 3<input"),
        );
        self::assertOutcome(0, "a\nb\n", $this->shell("{ rm input; {$run}; } 3<input"));
        self::assertOutcome(0, "c\n", $this->shell("mkfifo p; echo c > p & exec 3<p; wait; {$run}"));
    }

    public function testNoInputIsNoJobs(): void
    {
        self::assertOutcome(0, '', $this->spindle(['echo'], ''));
    }

    public function testASlowProducerDelaysNothing(): void
    {
        $input = new InputStream();
        $process = $this->start(['echo'], $input);
        foreach (['a', 'b', 'c'] as $line) {
            $input->write("{$line}\n");
            // The next line is written only after this one has run.
            Eventually::holdsByItself(
                static fn(): bool => str_contains($process->getOutput(), "{$line}\n"),
                "{$line} has run",
                10.0,
            );
        }
        $input->close();
        $process->wait();

        self::assertOutcome(0, "a\nb\nc\n", $process);
    }

    public function testAnEndlessInputIsNotReadAhead(): void
    {
        $process = $this->shell('yes | $SPINDLE run -j2 --halt soon,done=20 echo | wc -l; echo ${PIPESTATUS[1]}');

        self::assertMatchesRegularExpression('/^2[0-3]\n0\n$/', $process->getOutput());
    }

    /** Returns a memory limit that a short run hardly needs. PHP keeps the list of the files of a phar in memory. */
    private static function memory(): string
    {
        return Program::isPhar() ? '11M' : '8M';
    }

    public function testMemoryDoesNotGrowWithTheInput(): void
    {
        // Fewer lines with a lower memory limit detect the same growth per line: about 30 bytes.
        [$lines, $limit, $timeout] = Scale::isFull() ? [3_000_000, '16M', 150.0] : [60_000, self::memory(), 30.0];
        $process = $this->shell(
            "seq {$lines} | php -d memory_limit={$limit} \$SPINDLE run --dry-run echo | tail -n1",
            $timeout,
        );

        self::assertOutcome(0, "echo {$lines}\n", $process);
    }

    public function testMemoryDoesNotGrowWithTheJobs(): void
    {
        [$jobs, $limit] = Scale::isFull() ? [20_000, '12M'] : [700, self::memory()];
        $process = $this->shell(
            "seq {$jobs} | php -d memory_limit={$limit} \$SPINDLE run -j4 -k --joblog log echo | tail -n1",
        );

        self::assertOutcome(0, "{$jobs}\n", $process);
    }

    public function testOutputsAreInTheOrderOfTheInputOnDemand(): void
    {
        // Each job waits for the one after it.
        $process = $this->spindle(
            [
                '-j5',
                '-k',
                'while [ {} -lt 5 ] && [ ! -e $(({#} + 1)) ]; do sleep 0.05; done; touch {}; echo {}',
                ':::',
                '1',
                '2',
                '3',
                '4',
                '5',
            ],
        );

        self::assertOutcome(0, "1\n2\n3\n4\n5\n", $process);
    }

    public function testOutputsComeAsJobsEndOtherwise(): void
    {
        // The first job ends only after the second one's output is written.
        $process = $this->shell(
            '$SPINDLE run -j2 "while [ {} = 1 ] && ! grep -q 2 output; do sleep 0.05; done; echo {}"'
            . ' ::: 1 2 > output; cat output',
        );

        self::assertOutcome(0, "2\n1\n", $process);
    }

    public function testASlowFirstJobDoesNotKeepLaterOnesFromRunning(): void
    {
        $process = $this->spindle(
            ['-j2', '-k', 'while [ {} = 1 ] && [ ! -e 50 ]; do sleep 0.05; done; touch {}; echo {}'],
            implode("\n", range(1, 50)),
        );

        self::assertOutcome(0, implode("\n", range(1, 50)) . "\n", $process);
    }

    public function testOutputOfTwoJobsIsNeverMixed(): void
    {
        $process = $this->spindle(
            [
                '-j8',
                'for i in 1 2 3 4 5 6 7 8 9; do echo {} $i; echo {} $i >&2; sleep 0.00{}; done',
                ':::',
                ...array_map(strval(...), range(1, 40)),
            ],
        );

        self::assertSame(0, $process->getExitCode());
        foreach ([$process->getOutput(), $process->getErrorOutput()] as $output) {
            self::assertSame(40, preg_match_all('/(\d+) 1\n(?:\1 [2-8]\n){7}\1 9\n/', $output), $output);
        }
    }

    public function testTaggedLinesBeginWithTheInput(): void
    {
        $process = $this->spindle(['-k', '--tag', 'printf "%s\n" x {}; printf e >&2', ':::', 'a', 'b c']);

        self::assertOutcome(0, "a\tx\na\ta\nb c\tx\nb c\tb c\n", $process, "a\te\nb c\te\n");
    }

    public function testLargeOutputOnBothStreamsComesWhole(): void
    {
        $process = $this->shell(
            '$SPINDLE run -j4 "head -c 3000000 /dev/zero | tr \'\0\' {};'
            . ' head -c 2000000 /dev/zero | tr \'\0\' {} >&2" ::: a b c d >out 2>err; '
            . 'for c in a b c d; do tr -cd $c <out | wc -c; tr -cd $c <err | wc -c; done; tr -s abcd <out | wc -c',
        );

        self::assertOutcome(0, str_repeat("3000000\n2000000\n", 4) . "4\n", $process);
    }

    public function testLargeOutputsThatWaitForTheirTurnShareADescriptor(): void
    {
        // All jobs except the first have ended, with two outputs each, before anything can be written.
        [$jobs, $descriptors] = Scale::isFull() ? [200, 300] : [70, 100];
        $process = $this->shell(
            Program::CLOSE_ALL . "ulimit -n {$descriptors}; seq {$jobs} | \$SPINDLE run -j4 -k "
            . "\"while [ {#} = 1 ] && [ ! -e {$jobs} ]; do sleep 0.05; done; touch {}; "
            . 'yes {} 2> /dev/null | head -c 1100000; yes e{} 2> /dev/null | head -c 1100000 >&2" > output 2> errors;'
            . ' echo $?; '
            . "cmp output <(for i in \$(seq {$jobs}); do yes \$i 2> /dev/null | head -c 1100000; done) "
            . "&& cmp errors <(for i in \$(seq {$jobs}); do yes e\$i 2> /dev/null | head -c 1100000; done) "
            . '&& echo same',
        );

        self::assertOutcome(0, "0\nsame\n", $process);
    }

    public function testLargeOutputNeedsNoMemory(): void
    {
        $process = $this->shell('php -d memory_limit=24M $SPINDLE run "head -c {} /dev/zero" ::: 60000000 | wc -c');

        self::assertOutcome(0, "60000000\n", $process);
    }

    public function testSlotsAreNumberedAndNoTwoJobsShareOne(): void
    {
        $process = $this->spindle(
            ['-j3', 'mkdir slot{%} && echo {%} && rmdir slot{%}', ...[':::', ...array_map(strval(...), range(1, 30))]],
        );

        self::assertSame(0, $process->getExitCode(), $process->getErrorOutput());
        self::assertSame(['1', '2', '3'], self::sorted(array_unique(explode("\n", trim($process->getOutput())))));
    }

    public function testAFailedJobIsTriedAgain(): void
    {
        $process = $this->spindle(['--retries', '3', 'echo x >> {}; test $(wc -l < {}) -gt {}', ':::', '1', '2', '3']);

        self::assertSame(1, $process->getExitCode());
        self::assertSame(
            [2, 3, 3],
            array_map(fn(string $file): int => \count((array) file($this->path($file))), ['1', '2', '3']),
        );
    }

    public function testAJobIsEndedWhenItsTimeIsOver(): void
    {
        $process = $this->spindle(['-k', '--timeout', '0.2', 'echo {}; sleep {}', ':::', '0', '60']);

        self::assertSame([1, "0\n60\n"], [$process->getExitCode(), $process->getOutput()]);
        self::assertMatchesRegularExpression(
            "/^spindle: echo 60; sleep 60: timed out \\(0\\.2 s\\) after 0\\.\\d+ s\n\$/",
            $process->getErrorOutput(),
        );
    }

    public function testAJobIsEndedWhenItTakesMuchLongerThanTheMedian(): void
    {
        $process = $this->spindle(['-j1', '--timeout', '300%', 'sleep', ':::', '0.1', '0.1', '0.1', '60']);

        self::assertSame(1, $process->getExitCode());
        self::assertMatchesRegularExpression(
            '/^spindle: sleep 60: timed out \(0\.\d{1,3} s\) after/',
            $process->getErrorOutput(),
        );
    }

    public function testStartsAreApartOnDemand(): void
    {
        $begin = microtime(true);
        self::assertOutcome(
            0,
            '',
            $this->spindle(['-j4', '--delay', '0.1', '--joblog', 'log', 'true', ':::', '1', '2', '3']),
        );

        $starts = array_map(floatval(...), $this->column('log', 'Starttime'));
        self::assertCount(3, $starts);
        sort($starts);
        foreach ($starts as $i => $start) { // recorded shortly after each start
            self::assertGreaterThanOrEqual(0.1 * $i - 0.001, $start - $begin, "Start {$i}");
        }
    }

    public function testStartsOfFurtherAttemptsAreApartTooOnDemand(): void
    {
        $job = 'date +%s.%N >> starts; false';
        $begin = microtime(true);
        $process = $this->spindle(['-j4', '--delay', '0.3', '--retries', '2', $job, ':::', '1', '2', '3']);
        self::assertSame(3, $process->getExitCode());

        $starts = array_map(floatval(...), (array) file($this->path('starts')));
        self::assertCount(6, $starts);
        sort($starts);
        foreach ($starts as $i => $start) { // recorded shortly after each start
            self::assertGreaterThanOrEqual(0.3 * $i, $start - $begin, "Start {$i}");
        }
    }

    public function testAsManyRunAtOnceAsTheFileSaysAtTheTime(): void
    {
        $this->file('jobs', "1\n");
        $process = $this->start(
            ['-j', 'jobs', 'touch started{}; while [ ! -e go ]; do sleep 0.05; done', ':::', '1', '2', '3', '4', '5'],
        );
        $started = fn(): int => \count((array) glob($this->path('started*')));
        $this->waitForFile('started1');
        self::assertSame(1, $started());

        $this->file('jobs', "3\n");
        Eventually::holdsByItself(static fn(): bool => $started() === 3, 'three run', 10.0);

        $this->file('go', '');
        self::assertSame(0, $process->wait());
        self::assertSame(5, $started());
    }

    public function testAsManyAsPossibleRunAtOnceOnDemand(): void
    {
        $process = $this->spindle(
            [
                '-j0',
                'touch {}; while [ $(ls | wc -l) -lt 20 ]; do sleep 0.05; done',
                ':::',
                ...array_map(strval(...), range(1, 20)),
            ],
        );

        self::assertSame(0, $process->getExitCode());
    }

    /** @return iterable<string, array{int, int}> failed jobs, exit status */
    public static function failures(): iterable
    {
        yield 'none' => [0, 0];
        yield 'one' => [1, 1];
        yield 'a hundred' => [100, 100];
        yield 'more' => [103, 101];
    }

    #[DataProvider('failures')]
    public function testTheExitStatusIsTheNumberOfFailedJobs(int $failed, int $status): void
    {
        $process = $this->spindle(['-j4'], str_repeat("false\n", $failed) . "true\n");

        self::assertOutcome($status, '', $process);
    }

    public function testAHaltSoonStartsNoMoreAndLetsFinishWhatRuns(): void
    {
        // The first job waits for the end of the second.
        $line = '[ {} = 1 ] && until [ -s 2 ] && ! kill -0 $(cat 2) 2>&-; do sleep 0.1; done; echo $$ > {}; echo {}; '
            . '[ {} = 1 ]';
        $process = $this->spindle(
            [
                '-j2',
                '-k',
                '--halt',
                'soon,fail=1',
                $line,
                ':::',
                '1',
                '2',
                '3',
                '4',
            ],
        );

        self::assertOutcome(
            1,
            "1\n2\n",
            $process,
            'spindle: job 2 failed: exit code 1: ' . strtr($line, ['{}' => '2'])
                . "\nspindle: halted after 1 job, of which 1 failed; running jobs may finish\n",
        );
        self::assertFileDoesNotExist($this->path('3'));
    }

    public function testAHaltNowEndsWhatRunsAndForgetsIt(): void
    {
        $line = 'if [ {} = 1 ]; then echo 1; touch 1; sleep 60; fi; while [ ! -e 1 ]; do sleep 0.05; done; exit 3';
        $process = $this->spindle(
            ['-j2', '--joblog', 'log', '--halt', 'now,fail=1', $line, ':::', '1', '2', '3'],
        );

        self::assertOutcome(
            3,
            '',
            $process,
            'spindle: job 2 failed: exit code 3: ' . strtr($line, ['{}' => '2'])
                . "\nspindle: halted after 1 job, of which 1 failed; running jobs are ended\n",
        );
        self::assertSame(['2'], $this->column('log', 'Seq'));
    }

    public function testTheErrorOfAJobPrecedesTheMessageThatItHaltsTheRun(): void
    {
        $process = $this->spindle(['--halt', 'now,fail=1', './missing', ':::', '1']);

        self::assertMatchesRegularExpression(
            "~^spindle: \./missing 1: could not be started: .*\nspindle: halted after 1 job, .*\n\$~D",
            $process->getErrorOutput(),
        );
    }

    public function testAHaltNamesTheFailedJobOnce(): void
    {
        $halt = ['-j1', '--halt', 'soon,fail=1'];
        $long = 'exit 3 # ' . str_repeat('x', 1_000);
        [$named] = explode("\n", $this->spindle([...$halt, ':::', $long])->getErrorOutput());
        self::assertSame('spindle: job 1 failed: exit code 3: ' . substr($long, 0, 199) . '…', $named);

        foreach ([[...$halt, '--progress', 'plain'], [...$halt, '--timeout', '0.1']] as $arguments) {
            $errors = $this->spindle([...$arguments, ':::', 'sleep 0.5; exit 3'])->getErrorOutput();
            self::assertSame(1, substr_count($errors, 'sleep 0.5; exit 3'), $errors);
        }
    }

    public function testAHaltOnSuccessIsSuccess(): void
    {
        $process = $this->spindle(['-j1', '--halt', 'now,success=1', ':::', 'false', 'true', 'touch third']);

        self::assertSame(0, $process->getExitCode());
        self::assertFileDoesNotExist($this->path('third'));
    }

    public function testAHaltDoesNotWaitForASlowInput(): void
    {
        $input = new InputStream();
        $input->write("false\n");
        $process = $this->start(['--halt', 'now,fail=1'], $input);

        // The input stays open without data.
        Eventually::holdsByItself(static fn(): bool => !$process->isRunning(), 'it has ended', 10.0);
        $input->close();
        self::assertSame(1, $process->wait());
    }

    public function testADryRunPrintsWhatWouldRun(): void
    {
        $process = $this->spindle(
            [
                '--dry-run',
                '--joblog',
                'log',
                '--results',
                'results',
                'touch {} {#}; gzip {} > {.}.gz',
                ':::',
                'a b.c',
                "it's",
            ],
        );

        self::assertOutcome(
            0,
            "touch 'a b.c' 1; gzip 'a b.c' > 'a b'.gz\n"
                . "touch 'it'\"'\"'s' 2; gzip 'it'\"'\"'s' > 'it'\"'\"'s'.gz\n",
            $process,
        );
        self::assertSame(['.', '..'], scandir($this->path()));
        self::assertOutcome(0, "echo 'a b'\n", $this->spindle(['--dry-run', 'echo', ':::', 'a b']));
    }

    public function testJobsReadAnEmptyStandardInput(): void
    {
        self::assertOutcome(0, "0\n0\n", $this->spindle(['-k', 'wc -c; :', ':::', 'a', 'b'], 'not for them'));
    }

    public function testJobsHaveTheEnvironmentOfTheCaller(): void
    {
        $process = $this->shell(
            'unset COLUMNS LINES SHELL_VERBOSITY; export A=1; env | grep -v "^_=" | sort > before;'
            . ' $SPINDLE run "env | grep -Ev \"^(_|SPINDLE_COMMAND)=\" | sort >" ::: inside; diff before inside',
        );

        self::assertOutcome(0, '', $process);
    }

    public function testNoProcessIsStartedToFindTheSizeOfTheTerminal(): void
    {
        $this->file('stty', "#!/bin/sh\ntouch started\n", 0o700);
        $process = $this->shell('unset COLUMNS LINES; PATH=$PWD:$PATH $SPINDLE run echo ::: a');

        self::assertOutcome(0, "a\n", $process);
        self::assertFileDoesNotExist($this->path('started'));
    }

    public function testAVariableMayHaveAnyName(): void
    {
        $process = $this->shell('env a.b=1 "c d=2" "e[=3" $SPINDLE run -k printenv ::: a.b "c d" "e["');

        self::assertOutcome(0, "1\n2\n3\n", $process);
    }

    public function testAProgramThatIsNotThereIsAFailedJobWithAReason(): void
    {
        $process = $this->spindle(['-k', 'no-such-program', ':::', '1']);

        self::assertSame([1, ''], [$process->getExitCode(), $process->getOutput()]);
        self::assertStringStartsWith(
            "spindle: no-such-program 1: could not be started: 'no-such-program': ",
            $process->getErrorOutput(),
        );
    }

    public function testAFunctionOfBashIsReportedWithWhatToDo(): void
    {
        $process = $this->shell("env 'BASH_FUNC_f%%=() { :; }' \$SPINDLE run f ::: 1");

        self::assertSame([1, ''], [$process->getExitCode(), $process->getOutput()]);
        self::assertStringEndsWith(
            ". f is a function of bash; use bash -c 'f \"$@\"' bash {}\n",
            $process->getErrorOutput(),
        );
    }

    public function testAnInputThatCannotBeACommandIsAFailedJob(): void
    {
        $process = $this->spindle(['-k', 'echo'], "a\nb\0\nc\n");

        self::assertOutcome(
            1,
            "a\nc\n",
            $process,
            "spindle: input line 2: Argument 1 of 'echo' contains a NUL byte at offset 1,"
            . " which the system cannot pass to a program\n",
        );
    }

    /** @return iterable<string, array{list<string>}> options */
    public static function pathsWithTheValue(): iterable
    {
        yield 'a working directory' => [['--wd', 'folder/{1}']];
        yield 'the folder of the results' => [['--results', 'folder/{1}/']];
        yield 'a file of the results' => [['--results', 'folder/{1}']];
        yield 'a dry run' => [['--wd', 'folder/{1}', '--dry-run']];
    }

    /** @param list<string> $options */
    #[DataProvider('pathsWithTheValue')]
    public function testAValueThatIsNoPathIsAFailedJob(array $options): void
    {
        $input = "a,1\nb\0,2\nc,3\n";
        $process = $this->spindle(['--colsep', ',', ...$options, 'echo', '{2}'], $input);

        self::assertSame(1, $process->getExitCode());
        self::assertMatchesRegularExpression(
            '/^spindle: job 2: option --(?:work-dir|results): the path contains a NUL byte, .+\n$/D',
            $process->getErrorOutput(),
        );
    }

    public function testMoreCombinationsThanCanBeCountedRun(): void
    {
        $this->file('values', implode("\n", range(1, 100_000)));
        $process = $this->spindle([
            '-j1', '--progress', 'plain', '--halt', 'soon,done=2', 'echo', '::::', ...array_fill(0, 4, 'values'),
        ]);

        self::assertSame([0, "1 1 1 1\n1 1 1 2\n"], [$process->getExitCode(), $process->getOutput()]);
    }

    /** @return iterable<string, array{list<string>, int}> arguments and exit status */
    public static function failuresWithAValue(): iterable
    {
        $value = "\e]0;title\a\e[31m\u{9b}32m";
        yield 'a folder' => [['--wd', 'file/{}', 'true', ':::', $value], 254];
        yield 'a result' => [['--results', 'file/{}/', 'true', ':::', $value], 254];
        yield 'a program' => [['{}', ':::', $value], 1];
        yield 'a line of JSON' => [['--jsonl', ':::', "{\"id\":\"{$value}\"}"], 1];
        yield 'a file' => [['-a', $value, 'true'], 255];
        yield 'an option' => [["--{$value}"], 255];
        yield 'the value of an option' => [['--halt', $value, 'true', ':::', 'a'], 255];
    }

    /** @param list<string> $arguments */
    #[DataProvider('failuresWithAValue')]
    public function testAFailureSendsNoControlCharacterToTheTerminal(array $arguments, int $status): void
    {
        $this->file('file', '');
        $process = $this->spindle($arguments);

        self::assertSame([$status, ''], [$process->getExitCode(), $process->getOutput()]);
        self::assertMatchesRegularExpression('/^spindle: \P{C}+\n$/Du', $process->getErrorOutput());
    }

    public function testALineWithoutAnEndIsRefusedWhenItIsTooLong(): void
    {
        $process = $this->shell('(echo a; head -c 6000000 /dev/zero) 2>/dev/null | $SPINDLE run echo');

        self::assertOutcome(
            255,
            "a\n",
            $process,
            "spindle: input line 2 is longer than 4 MiB, the limit for one line\n",
        );
    }

    public function testContinuedLinesAreRefusedWhenTheyAreTooLongTogether(): void
    {
        $process = $this->shell('yes "1234567 " 2>/dev/null | $SPINDLE run -L 1 echo');

        self::assertOutcome(
            255,
            '',
            $process,
            'spindle: input line 524289, with the lines that it continues, is longer than 4 MiB,'
                . " the limit for one line\n",
        );
    }

    public function testAReaderThatLeavesEndsTheRunQuietly(): void
    {
        $process = $this->shell(
            'seq 100000 2>/dev/null | $SPINDLE run -j4 "echo {}; sleep 0.1" | head -n2; echo ${PIPESTATUS[1]}',
        );

        self::assertMatchesRegularExpression('/^\d\n\d\n141\n$/', $process->getOutput());
        self::assertSame('', $process->getErrorOutput());
        $this->assertNothingRuns();
    }

    public function testAStackWithoutALimitAllowsSixMebibytesOfArguments(): void
    {
        $process = $this->shell(<<<'SH'
            ulimit -s unlimited
            word=$(head -c 100000 /dev/zero | tr '\0' x)
            set --
            for i in $(seq 35); do set -- "$@" $word; done
            echo input | $SPINDLE run sh -c 'echo $#' name "$@"
            SH);

        self::assertSame("36\n", $process->getOutput(), $process->getErrorOutput());
    }

    public function testAnErrorShowsTheBeginningOfALongCommand(): void
    {
        $process = $this->spindle(['echo', '{}'], str_repeat('x', 200_000) . "\n");

        self::assertMatchesRegularExpression(
            '/^spindle: echo x{190,200}\x{2026}: could not be started: .+: Argument list too long.* in a file\n$/Du',
            $process->getErrorOutput(),
        );
    }

    public function testAFullDiskIsToldInOneLine(): void
    {
        $process = $this->shell('$SPINDLE run -j1 echo ::: a b > /dev/full');

        self::assertOutcome(254, '', $process, "spindle: can't write standard output: No space left on device\n");
    }

    /** @return iterable<string, array{string}> */
    public static function linesOnStandardError(): iterable
    {
        yield 'the command' => ['-t'];
        yield 'the command of a job without captured output' => ['-t -u'];
        yield 'the progress' => ['--progress line'];
    }

    #[DataProvider('linesOnStandardError')]
    public function testALineThatStandardErrorDoesNotTakeEndsTheRun(string $options): void
    {
        $process = $this->shell("\$SPINDLE run -j1 {$options} sleep ::: 0 2> /dev/full");

        self::assertOutcome(254, '', $process, '');
    }

    /** @return iterable<string, array{string, int, string}> redirections, exit status, content of the log */
    public static function closedDescriptors(): iterable
    {
        yield 'input' => ['<&-', 0, "1 2\n"];
        // Without input, the program must also report that it can't write.
        yield 'all' => ['<&- >&- 2>&-', 254, "\n"];
        yield 'input and output' => ['<&- >&-', 254, "\n"];
        yield 'input and errors' => ['<&- 2>&-', 254, "\n"];
        yield 'errors' => ['2>&-', 254, "\n"];
        yield 'output' => ['>&-', 254, "\n"];
        yield 'output and errors' => ['>&- 2>&-', 254, "\n"];
    }

    #[DataProvider('closedDescriptors')]
    public function testNoFileTakesThePlaceOfAClosedStandardDescriptor(
        string $redirections,
        int $status,
        string $log,
    ): void {
        if (Program::isPhar() && substr_count($redirections, '-') > 1) {
            self::markTestSkipped('PHP opens a phar twice, so the file is two of the closed descriptors');
        }
        $process = $this->shell(
            "(\$PHP \$SPINDLE run -k --joblog log 'echo out; echo err >&2; :' ::: a b {$redirections}); echo \$?;"
            . " tail -n +2 log | cut -f 1 | xargs; grep -c '^[oe]' log",
        );

        self::assertStringEndsWith("{$status}\n{$log}0\n", $process->getOutput());
    }

    #[DataProvider('closedDescriptors')]
    public function testTheLockFileOfOpcacheCountsAsAClosedDescriptor(string $redirections, int $status): void
    {
        if (!\extension_loaded('Zend OPcache') || Program::isPhar()) {
            self::markTestSkipped('needs opcache, and PHP opens a phar twice');
        }
        $spindle = escapeshellarg(\PHP_BINARY) . ' -d opcache.enable_cli=1 $SPINDLE run';
        $process = $this->shell(
            "({$spindle} -k --joblog log 'echo out; echo err >&2; :' ::: a b {$redirections}); echo \$?;"
            . " {$spindle} echo <&- 2>&1; echo \$?; {$spindle} -u 'echo {} && true' ::: a >&-; echo \$?",
        );

        self::assertStringContainsString("{$status}\nspindle: standard input is closed; ", $process->getOutput());
        self::assertStringEndsWith("\n255\n1\n", $process->getOutput());
    }

    public function testTheJobsOfADeadLauncherAreNamedWithTheCommandThatContinues(): void
    {
        $line = 'kill -9 $PPID; sleep 60';
        $lost = "spindle: job 1 has no result: {$line} 1\n"
            . 'spindle: the process that starts the jobs died (signal 9), so 1 job has no result';

        self::assertOutcome(
            254,
            '',
            $this->spindle([$line, ':::', '1']),
            "{$lost}; with --joblog FILE, such a run can be continued with --resume\n",
        );
        $this->assertNothingRuns();
        self::assertOutcome(254, '', $this->spindle(['--joblog', 'log', '--shuf', $line, ':::', '1']), "{$lost}\n");
        $process = $this->spindle(['--joblog', 'log', $line, ':::', '1']);
        self::assertStringStartsWith(
            "{$lost}; to run the jobs that have not finished: ",
            $process->getErrorOutput(),
        );
        self::assertStringEndsWith(" run --resume --joblog log '{$line}' ::: 1\n", $process->getErrorOutput());
        self::assertSame([254, 2], [$process->getExitCode(), substr_count($process->getErrorOutput(), "\n")]);
    }

    public function testNoMoreThanTwentyLostJobsAreNamed(): void
    {
        $line = 'if [ {} = 30 ]; then kill -9 $PPID; fi; sleep 60';
        $numbers = array_map(strval(...), range(1, 30));
        $errors = explode("\n", $this->spindle(['-j30', $line, ':::', ...$numbers])->getErrorOutput());

        self::assertSame('spindle: job 1 has no result: ' . str_replace('{}', '1', $line), $errors[0]);
        self::assertSame('spindle: and 10 more jobs', $errors[20]);
        self::assertStringContainsString('so 30 jobs have no result; with --joblog FILE,', $errors[21]);
        $this->assertNothingRuns();
    }

    public function testEachStepIsLoggedOnDemand(): void
    {
        $process = $this->spindle(['-vvv', 'true', ':::', '1']);

        self::assertSame([0, ''], [$process->getExitCode(), $process->getOutput()]);
        self::assertStringContainsString('A launcher was started', $process->getErrorOutput());
        self::assertStringContainsString('Ended: true 1: exit code 0', $process->getErrorOutput());

        // No backslash before a tag is tested: the formatters of symfony/console 7 and 8 print it differently.
        $process = $this->spindle(['-vvv', 'true', ':::', '<info>x</info> </> <']);
        self::assertStringContainsString("Ended: true '<info>x</info> </> <'", $process->getErrorOutput());
    }

    /**
     * @param array<string> $values
     *
     * @return list<string>
     */
    private static function sorted(array $values): array
    {
        sort($values);

        return $values;
    }

    /** @return list<string> */
    private function column(string $log, string $name): array
    {
        $lines = explode("\n", rtrim((string) file_get_contents($this->path($log))));
        $rows = array_map(static fn(string $line): array => explode("\t", $line), $lines);
        $column = array_search($name, $rows[0], true);

        return array_map(static fn(array $row): string => trim($row[(int) $column] ?? ''), \array_slice($rows, 1));
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Tests\Cli;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\TestWith;
use Random\Engine\Mt19937;
use Random\Randomizer;
use Spindle\Cli\Internal\Run\JobLog;
use Spindle\Tests\Eventually;
use Spindle\Tests\Scale;
use Symfony\Component\Process\InputStream;
use Symfony\Component\Process\Process;

final class JobLogTest extends SpindleCommandTestCase
{
    #[TestWith(['/dev/stderr'])]
    #[TestWith(['/dev/fd/2'])]
    public function testAPipeOfThisProcessCanBeTheJobLog(string $log): void
    {
        $process = $this->shell("\$SPINDLE run --joblog {$log} echo ::: a 2>&1 >/dev/null | cut -f 1,9");

        self::assertOutcome(0, "Seq\tCommand\n1\techo a\n", $process);
    }

    public function testTheFileOfTheOutputCanBeTheJobLog(): void
    {
        $process = $this->shell('$SPINDLE run -j1 --joblog /dev/stdout echo ::: a b >file; cut -f 1,9 file');

        self::assertOutcome(0, "Seq\tCommand\na\n1\techo a\nb\n2\techo b\n", $process);
    }

    public function testAnIncompleteLastLineOfAnySizeIsRemoved(): void
    {
        $process = $this->shell(
            '$SPINDLE run --joblog log echo ::: a >/dev/null; truncate -s 100M log; ' . escapeshellarg(\PHP_BINARY)
            . ' -d memory_limit=64M $SPINDLE run --joblog log --resume echo ::: a b; cut -f 1,9 log',
        );

        self::assertOutcome(0, "b\nSeq\tCommand\n1\techo a\n2\techo b\n", $process);
    }

    public function testALineOfAnySizeThatIsNotOneOfAJobLogIsReported(): void
    {
        $process = $this->shell(
            '$SPINDLE run --joblog log echo ::: a >/dev/null; truncate -s 100M log; echo >>log; '
            . escapeshellarg(\PHP_BINARY) . ' -d memory_limit=64M $SPINDLE run --joblog log --resume echo ::: a b',
        );

        self::assertOutcome(
            255,
            '',
            $process,
            "spindle: option --joblog: line 3 of 'log' is not a line of a job log\n",
        );
        self::assertSame(100 << 20 | 1, filesize($this->path('log')));
    }

    public function testALogBeyondTheLimitOfFileSizesIsReported(): void
    {
        $process = $this->shell('ulimit -f 0; $SPINDLE run --joblog log echo ::: a');

        self::assertOutcome(254, '', $process, "spindle: can't write the job log 'log': File too large\n");
    }

    #[TestWith(['run echo ::: a'])]
    #[TestWith(['run --dry-run echo ::: a'])]
    #[TestWith(['list'])]
    public function testALimitOfFileSizesDoesNotEndAProcessWhoseMessagesAreInAFile(string $command): void
    {
        $process = $this->shell("(ulimit -f 0; exec \$SPINDLE {$command} >file 2>&1)");

        self::assertOutcome(254, '', $process, '');
    }

    public function testEachJobThatIsOverHasALineInGnuParallelsFormat(): void
    {
        $before = microtime(true);
        $process = $this->spindle(
            ['-k', '--joblog', 'log', ':::', "echo a\necho b", 'exit 3', 'kill -9 $$', 'no-such-program'],
        );

        self::assertSame(3, $process->getExitCode());
        $lines = $this->lines();
        self::assertSame(JobLog::HEADER, array_shift($lines));
        $expected = ["4\t0\t0\techo a\0echo b", "0\t3\t0\texit 3", "0\t0\t9\tkill -9 $$", "0\t127\t0\tno-such-program"];
        foreach ($expected as $i => $end) {
            $number = $i + 1;
            self::assertSame(
                1,
                preg_match(
                    "/^{$number}\t:\t(\\d+\\.\\d{3})\t +\\d+\\.\\d{3}\t0\t" . preg_quote($end, '/') . '$/D',
                    rtrim($lines[$i], "\n"),
                    $match,
                ),
                $lines[$i],
            );
            self::assertEqualsWithDelta($before, (float) $match[1], 10.0);
        }
    }

    public function testANewRunBeginsANewLog(): void
    {
        $this->spindle(['--joblog', 'log', 'echo', ':::', 'a', 'b']);
        $this->spindle(['--joblog', 'log', 'echo', ':::', 'c']);

        self::assertSame(['echo c'], $this->commands());
    }

    public function testAFileThatIsNoJobLogIsRefusedAndStays(): void
    {
        $this->file('commands.txt', "touch ran\n");

        foreach ([[], ['--resume']] as $options) {
            $process = $this->spindle([...$options, '--joblog', 'commands.txt', '-a', 'commands.txt']);

            self::assertOutcome(
                255,
                '',
                $process,
                "spindle: option --joblog: 'commands.txt' exists and is not a job log; give another file\n",
            );
        }
        self::assertStringEqualsFile($this->path('commands.txt'), "touch ran\n");
        self::assertFileDoesNotExist($this->path('ran'));
    }

    public function testAResumedRunLeavesOutWhatTheLogHas(): void
    {
        $this->spindle(['-j1', '--joblog', 'log', '--halt', 'soon,done=2', 'echo', ':::', 'a', 'b', 'c', 'd']);
        self::assertSame(['echo a', 'echo b'], $this->commands());

        $process = $this->spindle(['-j1', '--joblog', 'log', '--resume', 'echo', ':::', 'a', 'b', 'c', 'd']);

        self::assertOutcome(0, "c\nd\n", $process);
        self::assertSame(['echo a', 'echo b', 'echo c', 'echo d'], $this->commands());
        self::assertOutcome(0, '', $this->spindle(['--joblog', 'log', '--resume', 'echo', ':::', 'a', 'b', 'c', 'd']));
    }

    public function testAResumedRunWithoutALogStartsAtTheBeginning(): void
    {
        self::assertOutcome(0, "a\n", $this->spindle(['--joblog', 'log', '--resume', 'echo', ':::', 'a']));
        self::assertSame(['echo a'], $this->commands());
    }

    public function testWhatFailedRunsAgainOnDemand(): void
    {
        $arguments = ['-j1', '--joblog', 'log', 'test -e {} && echo {}', ':::', 'a', 'b', 'c'];
        $this->file('b', '');
        self::assertOutcome(2, "b\n", $this->spindle($arguments));

        self::assertOutcome(0, '', $this->spindle(['--resume', ...$arguments]));
        $this->file('a', '');
        self::assertOutcome(1, "a\n", $this->spindle(['--resume-failed', ...$arguments]));
        $this->file('c', '');
        self::assertOutcome(0, "c\n", $this->spindle(['--resume-failed', ...$arguments]));
        self::assertOutcome(0, '', $this->spindle(['--resume-failed', ...$arguments]));
    }

    public function testAJobOfATornLineRunsAgain(): void
    {
        $this->spindle(['-j1', '--joblog', 'log', 'echo', ':::', 'a', 'b']);
        $this->file('log', substr((string) file_get_contents($this->path('log')), 0, -2));

        self::assertOutcome(0, "b\n", $this->spindle(['-j1', '--joblog', 'log', '--resume', 'echo', ':::', 'a', 'b']));
        self::assertSame(['echo a', 'echo b'], $this->commands());
    }

    public function testAnotherInputIsRefusedBeforeAnythingStarts(): void
    {
        $this->spindle(['-j1', '--joblog', 'log', 'echo', ':::', 'a', 'b', 'c']);
        $log = implode('', array_filter($this->lines(), static fn(string $line): bool => !str_starts_with($line, '1')));
        $this->file('log', $log);
        $refused = fn(
            string $job,
            string $was,
            string $is,
        ): string => "spindle: option --joblog: job {$job} is '{$was}' in the job log 'log', but {$is}; --resume and"
            . " --resume-failed need the same input and command as before. For another command, use another job log\n";

        $other = ['touch ran; echo', ':::', 'a', 'b', 'c'];
        self::assertOutcome(
            255,
            '',
            $this->spindle(['--joblog', 'log', '--resume', ...$other]),
            $refused('2', 'echo b', "the input has 'touch ran; echo b'"),
        );
        self::assertOutcome(
            255,
            '',
            $this->spindle(['--joblog', 'log', '--resume', 'echo'], "a\nb\nx\n"),
            $refused('3', 'echo c', "the input has 'echo x'"),
        );
        self::assertOutcome(
            255,
            '',
            $this->spindle(['--joblog', 'log', '--resume', 'echo'], "a\nb\n"),
            $refused('3', 'echo c', 'the input ends after job 2'),
        );
        self::assertStringEqualsFile($this->path('log'), $log);
        self::assertFileDoesNotExist($this->path('ran'));
    }

    public function testAnInterruptedLookAtTheLogIsNoMismatch(): void
    {
        $this->spindle(['-j1', '--joblog', 'log', 'echo', ':::', 'a', 'b', 'c']);
        $input = new InputStream();
        $input->write("a\n");
        $process = $this->start(['--joblog', 'log', '--resume', '-vvv', 'echo'], $input);
        $process->waitUntil(static fn(string $_, string $output): bool => str_contains($output, 'is ready'));

        $process->signal(\SIGTERM);
        $process->wait();

        self::assertSame(143, $process->getExitCode());
        self::assertStringNotContainsString('mismatch', $process->getErrorOutput());
        self::assertSame(['echo a', 'echo b', 'echo c'], $this->commands());
    }

    public function testTheSlotOfAJobDoesNotMatterForResuming(): void
    {
        self::assertOutcome(
            0,
            "1 a\n1 b\n",
            $this->spindle(['-j1', '--joblog', 'log', 'echo', '{%}', '{}', ':::', 'a', 'b']),
        );
        self::assertOutcome(
            0,
            "1 c\n",
            $this->spindle(['-j1', '--joblog', 'log', '--resume', 'echo', '{%}', '{}', ':::', 'a', 'b', 'c']),
        );
        self::assertSame(["echo '{%}' a", "echo '{%}' b", "echo '{%}' c"], $this->commands());
    }

    public function testAResumedDryRunPrintsOnlyWhatIsLeft(): void
    {
        $this->spindle(['-j1', '--joblog', 'log', 'test a =', ':::', 'a', 'b']);
        $log = file_get_contents($this->path('log'));

        self::assertOutcome(
            0,
            "test a = c\n",
            $this->spindle(['--dry-run', '--joblog', 'log', '--resume', 'test a =', ':::', 'a', 'b', 'c']),
        );
        self::assertOutcome(
            0,
            "test a = b\ntest a = c\n",
            $this->spindle(['--dry-run', '--joblog', 'log', '--resume-failed', 'test a =', ':::', 'a', 'b', 'c']),
        );
        self::assertStringEqualsFile($this->path('log'), (string) $log);
    }

    public function testLinesAreInTheOrderOfTheOutput(): void
    {
        $this->spindle(
            [
                '-j4',
                '-k',
                '--joblog',
                'log',
                'while [ {} -lt 4 ] && [ ! -e $(({#} + 1)) ]; do sleep 0.05; done; touch {}',
                ':::',
                '1',
                '2',
                '3',
                '4',
            ],
        );

        self::assertSame(
            ['1', '2', '3', '4'],
            array_map(static fn(string $line): string => explode("\t", $line)[0], \array_slice($this->lines(), 1)),
        );
    }

    public function testALogOfGnuParallelWithQuotedValuesIsResumed(): void
    {
        $line = static fn(int $number, string $command): string => "{$number}\t:\t1.0\t 1.0\t0\t0\t0\t0\t{$command}\n";
        $this->file('log', JobLog::HEADER . $line(1, 'echo a\\ b') . $line(2, "echo 'it'\"'\"'s'"));

        $process = $this->spindle(['--joblog', 'log', '--resume', 'echo', ':::', 'a b', "it's", 'c']);

        self::assertOutcome(0, "c\n", $process);
    }

    public function testALogOfGnuParallelWithMissingValuesIsResumed(): void
    {
        foreach (['show a  end', "show a '' end"] as $index => $command) {
            $this->file('log', JobLog::HEADER . "1\t:\t1.0\t 1.0\t0\t0\t0\t0\t{$command}\n");
            $options = [['-k'], ['-q']][$index];

            $words = ['show', '{}', '{2}', 'end', ':::', 'a'];
            $process = $this->spindle([...$options, '--joblog', 'log', '--resume', ...$words]);

            self::assertOutcome(0, '', $process);
        }
    }

    public function testAPipeThatNoProcessReadsIsRefused(): void
    {
        posix_mkfifo($this->path('pipe'), 0o600);

        $process = $this->spindle(['--joblog', 'pipe', 'touch ran', ':::', 'a']);

        $message = "spindle: option --joblog: can't write 'pipe': no process reads this pipe\n";
        self::assertOutcome(255, '', $process, $message);
        self::assertFileDoesNotExist($this->path('ran'));
    }

    public function testATerminationEndsARunWhoseLogIsNotRead(): void
    {
        posix_mkfifo($this->path('pipe'), 0o600);
        $pipe = fopen($this->path('pipe'), 'r+'); // a reader that does not read
        \assert($pipe !== false);
        $values = array_map(static fn(int $n): string => $n . str_repeat('y', 30_000), range(1, 9));
        $process = $this->start(['--joblog', 'pipe', '-j1', ':', ':::', ...$values]);
        Eventually::holdsByItself(static function () use ($pipe): bool {
            [$none, $writable] = [[], [$pipe]];

            return stream_select($none, $writable, $none, 0) === 0;
        }, 'the pipe is full', 10.0);

        $process->signal(\SIGTERM);

        self::assertSame(143, $process->wait());
    }

    public function testTheLogMayGoToAPipe(): void
    {
        posix_mkfifo($this->path('pipe'), 0o600);
        $process = $this->shell('cut -f 9 pipe & $SPINDLE run --joblog pipe true ::: a; wait');

        self::assertOutcome(0, "Command\ntrue a\n", $process);
        self::assertOutcome(0, "Command\ntrue a\n", $this->shell('$SPINDLE run --joblog >(cut -f 9) true ::: a | cat'));
    }

    public function testTwoRunsDoNotShareALog(): void
    {
        $job = 'touch started; while [ ! -e go ]; do sleep 0.05; done; echo';
        $first = $this->start(['--joblog', 'log', $job, ':::', 'a']);
        $this->waitForFile('started');

        $message = "spindle: option --joblog: another run is writing to 'log'; give another file,"
            . " or wait for that run\n";
        foreach ([[], ['--resume']] as $options) {
            $process = $this->spindle(['--joblog', 'log', ...$options, 'touch ran', ':::', 'a']);
            self::assertOutcome(255, '', $process, $message);
        }
        self::assertStringEqualsFile($this->path('log'), JobLog::HEADER);
        $this->file('go', '');

        self::assertSame(0, $first->wait());
        self::assertSame(["{$job} a"], $this->commands());
        self::assertFileDoesNotExist($this->path('ran'));
    }

    /** @return iterable<string, array{string}> */
    public static function losses(): iterable
    {
        yield 'deleted' => ['rm log'];
        yield 'moved away' => ['mv log other'];
        yield 'replaced' => ['cp log new; mv new log'];
    }

    #[DataProvider('losses')]
    public function testALogThatIsLostDuringTheRunIsAnError(string $loss): void
    {
        $process = $this->spindle(['--joblog', 'log', "{$loss}; echo", ':::', 'a']);

        $message = "spindle: can't write the job log 'log': it was deleted, moved or replaced during the run\n";
        self::assertOutcome(254, "a\n", $process, $message);
    }

    public function testARunThatIsKilledAtAnyMomentAndResumedDoesEachJobAndNoneTwice(): void
    {
        $random = new Randomizer(new Mt19937(Scale::seed()));
        $jobs = 60;
        $counts = [];
        for ($kills = Scale::of(200); $kills > 0; $counts = $this->counts()) {
            $logged = $this->logged();
            if (\count($logged) === $jobs) {
                $this->assertAllRan($jobs);
                $this->forget();
                $logged = $counts = [];
            }
            $process = $this->resumable($jobs);
            $process->start();
            $deadline = hrtime(true) + $random->getInt(0, 250_000) * 1000;
            while ($process->isRunning() && hrtime(true) < $deadline) {
                usleep(500);
            }
            if ($process->isRunning()) {
                $process->signal(\SIGKILL);
                --$kills;
            }
            $process->wait(static fn() => null);
            self::assertSame('', $process->getErrorOutput());
            $this->assertNothingRuns();
            if ($random->getInt(0, 3) === 0 && $this->logged() !== []) {
                file_put_contents(
                    $this->path('log'),
                    substr("61\t:\t1.0\t 1.0\t0\t0\t0\t0\techo 1\n", 0, $random->getInt(1, 25)),
                    \FILE_APPEND,
                );
            }

            foreach ($logged as $job) {
                self::assertSame(
                    $counts[$job],
                    $this->counts()[$job],
                    "Job {$job} had a line in the log and ran again",
                );
            }
            self::assertSame(
                [],
                array_diff($this->logged(), $this->printed()),
                'What has a line in the log is printed',
            );
        }
        self::assertSame(0, $this->resumable($jobs)->run());
        $this->assertAllRan($jobs);
    }

    public function testANumberFarBeyondTheInputIsReportedAtOnce(): void
    {
        $this->spindle(['--joblog', 'log', 'echo', ':::', 'a']);
        $line = "999999999999999999\t:\t1700000000.000\t0.010\t0\t2\t0\t0\techo z\n";
        file_put_contents($this->path('log'), $line, \FILE_APPEND);

        self::assertOutcome(
            255,
            '',
            $this->spindle(['--joblog', 'log', '--resume', 'echo', ':::', 'a', 'b']),
            "spindle: option --joblog: job 999999999999999999 is 'echo z' in the job log 'log', but the input ends"
                . ' after job 2; --resume and --resume-failed need the same input and command as before.'
                . " For another command, use another job log\n",
        );
    }

    public function testARunWithBlocksOfAnotherSizeIsNotResumed(): void
    {
        $this->file('lines', str_repeat("0123456789\n", 1000));
        $part = ['--pipe-part', '-a', 'lines', '--joblog', 'log'];
        $this->spindle([...$part, '-j4', '--block', '-2', '--halt', 'now,done=1', 'wc -l']);
        $process = $this->spindle([...$part, '-j2', '--block', '-2', '--resume', 'wc -l']);
        self::assertSame([255, ''], [$process->getExitCode(), $process->getOutput()]);
        self::assertMatchesRegularExpression(
            "/^spindle: option --joblog: job (?:[1-3] got 1386 bytes according to the job log 'log', but its block has "
                . "2761|4 got 1386 bytes according to the job log 'log', but its block has 2717)"
                . ' bytes now; give the same input, --block and --jobs as before\n$/D',
            $process->getErrorOutput(),
        );

        $input = (string) file_get_contents($this->path('lines'));
        $pipe = ['--pipe', '-j1', '--joblog', 'piped'];
        $this->spindle([...$pipe, '--block', '3k', '--halt', 'now,done=1', 'wc -l'], $input);
        $process = $this->spindle([...$pipe, '--block', '4k', '--resume', 'wc -l'], $input);
        self::assertSame([255, ''], [$process->getExitCode(), $process->getOutput()]);
        self::assertOutcome(
            0,
            "272\n272\n184\n",
            $this->spindle([...$pipe, '--block', '3k', '--resume', 'wc -l'], $input),
        );
    }

    private function resumable(int $jobs): Process
    {
        $options = ['-j4', '-k', '--joblog', 'log', '--resume'];
        $command = ['echo x >> ran{}; sleep 0.01; echo {}', ':::', ...array_map(strval(...), range(1, $jobs))];

        return new Process(
            ['sh', '-c', 'exec "$@" >> output', 'sh', Program::path(), 'run', ...$options, ...$command],
            $this->path(),
            [self::MARK => $this->mark],
            '',
            30.0,
        );
    }

    /** @return list<int> */
    private function printed(): array
    {
        return array_map(intval(...), explode("\n", (string) @file_get_contents($this->path('output'))));
    }

    private function assertAllRan(int $jobs): void
    {
        $logged = $this->logged();
        sort($logged);
        self::assertSame(range(1, $jobs), $logged, 'Each job has one line');
        self::assertSame(range(1, $jobs), array_keys($this->counts()), 'Each job has run');
    }

    private function forget(): void
    {
        foreach ([...(array) glob($this->path('ran*')), $this->path('log'), $this->path('output')] as $file) {
            unlink((string) $file);
        }
    }

    /** @return list<int> numbers in complete lines of the log */
    private function logged(): array
    {
        $complete = array_filter($this->lines(), static fn(string $line): bool => str_ends_with($line, "\n"));

        return array_map(intval(...), \array_slice($complete, 1));
    }

    /** @return array<int, int> number of starts of each job, by its number */
    private function counts(): array
    {
        $counts = [];
        foreach ((array) glob($this->path('ran*')) as $file) {
            $counts[(int) substr(basename((string) $file), 3)] = (int) filesize((string) $file);
        }
        ksort($counts);
        clearstatcache();

        return $counts;
    }

    /** @return list<string> */
    private function commands(): array
    {
        return array_map(
            static fn(string $line): string => explode("\t", rtrim($line, "\n"), 9)[8] ?? '',
            \array_slice($this->lines(), 1),
        );
    }

    /** @return list<string> lines with their ends */
    private function lines(): array
    {
        $lines = is_file($this->path('log')) ? file($this->path('log')) : [];
        self::assertIsArray($lines);

        return $lines;
    }
}

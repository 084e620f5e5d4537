<?php

declare(strict_types=1);

namespace Spindle\Tests\Cli;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\Attributes\TestWith;
use Spindle\Tests\Eventually;

final class ProgressTest extends SpindleCommandTestCase
{
    public function testLinesOnStandardErrorSayHowFarItIs(): void
    {
        $process = $this->spindle(['-k', '--progress', 'plain', 'test', 'b', '!=', ':::', 'a', 'b', 'c']);

        self::assertSame([1, ''], [$process->getExitCode(), $process->getOutput()]);
        self::assertMatchesRegularExpression(
            "~^3/3 done, 1 failed, [\\d.]+/s, ETA 0:00\n\$~mD",
            $process->getErrorOutput(),
        );
    }

    public function testProgramsReadItAsJson(): void
    {
        $process = $this->spindle(['--progress', 'json', 'sleep', ':::', '0', '1.2']);

        self::assertSame([0, ''], [$process->getExitCode(), $process->getOutput()]);
        $lines = array_map(
            static fn(string $line): mixed => json_decode($line, true, 8, \JSON_THROW_ON_ERROR),
            explode("\n", rtrim($process->getErrorOutput())),
        );
        self::assertCount(2, $lines);
        [$middle, $end] = $lines;
        self::assertIsArray($middle);
        self::assertIsArray($end);
        self::assertSame(['done', 'total', 'failed', 'running', 'rate', 'eta', 'elapsed'], array_keys($end));
        self::assertSame([1, 2, 0, 1], [$middle['done'], $middle['total'], $middle['failed'], $middle['running']]);
        self::assertSame([2, 2, 0, 0, 0], [$end['done'], $end['total'], $end['failed'], $end['running'], $end['eta']]);
    }

    public function testTheTotalIsKnownForAFileAndLeavesOutWhatTheLogHas(): void
    {
        $this->file('input', "a\nb\nc");
        $this->spindle(['--joblog', 'log', '-a', 'input', '-j1', '--halt', 'soon,done=1', 'sleep 0; true']);

        $process = $this->shell('$SPINDLE run -j1 --joblog log --resume --progress json "sleep 0; true" < input');

        self::assertStringEndsWith("\n", $process->getErrorOutput());
        self::assertStringContainsString('{"done":2,"total":2,', $process->getErrorOutput());
    }

    public function testABarFillsTheWidthOfTheTerminal(): void
    {
        $session = $this->session('$SPINDLE run -j1 --bar echo ::: a b', 60, 8);
        self::assertSame(0, $session->wait());

        self::assertMatchesRegularExpression(
            '~^a\nb\n2/2 \[=+\]  0 running  0 failed  [\d.]+/s  ETA 0:00$~D',
            $session->terminal->text(),
        );
        self::assertSame(59, \strlen(explode("\n", $session->terminal->text())[2]));
        self::assertStringNotContainsString("\e[3", $this->session('NO_COLOR=1 $SPINDLE run --bar true ::: a')->all());
        self::assertStringNotContainsString("\e[3", $this->session('$SPINDLE run --no-ansi --bar true ::: a')->all());
        self::assertStringContainsString("\e[3", $session->bytes);
    }

    #[TestWith(['2> /dev/tty'])]
    #[TestWith(['> /dev/tty'])]
    public function testOutputReplacesABarIfAStreamIsTheControllingTerminal(string $redirection): void
    {
        $line = 'until [ -e go ]; do sleep 0.05; done; echo {}';
        $session = $this->session("\$SPINDLE run -j1 --bar '{$line}' ::: a b {$redirection}");
        $session->waitFor('~1 (of \d+ )?running~');
        $this->file('go', '');
        self::assertSame(0, $session->wait());

        self::assertMatchesRegularExpression('~^a\nb\n2/2 \[=+\] ~', $session->terminal->text());
    }

    public function testAJobCanReadTheTerminalAsTheMessageAboutTtySays(): void
    {
        $session = $this->session(
            '$SPINDLE run --tty true; $SPINDLE run "read x < $(tty); echo got \$x {}" ::: a',
            400,
        );
        $session->type("hello\n");
        self::assertSame(0, $session->wait());

        self::assertStringContainsString(
            "have no /dev/tty; a job can open the file that tty names in your shell, as in 'read x < /dev/pts/0'",
            $session->terminal->text(),
        );
        self::assertMatchesRegularExpression('~^got hello a$~m', $session->terminal->text());
    }

    public function testABarNamesTheSlowestRunningJob(): void
    {
        $session = $this->session(
            '$SPINDLE run -j2 --eta "test {} = b || until [ -e go ]; do sleep 0.05; done" ::: a b',
        );
        $session->waitFor('~^1/2 \[=+> +\]  1 running  0 failed  [\d.]+/s  ETA \d+:\d\d  0:0\d test .{4}~');
        $this->file('go', '');

        self::assertSame(0, $session->wait());
    }

    public function testOutputWithoutALineEndIsNotOverwritten(): void
    {
        $line = 'printf {}; test {} = a || until [ -e go ]; do sleep 0.05; done';
        $session = $this->session("\$SPINDLE run -j1 --bar '{$line}' ::: a b");
        $session->waitFor('~^a\n1/2 ~');
        $this->file('go', '');
        $session->wait();

        self::assertMatchesRegularExpression('~^a\nb\n2/2 ~', $session->terminal->text());
    }

    /** @return iterable<string, array{string}> */
    public static function linesWithoutATerminal(): iterable
    {
        $options = ['--bar', '--eta', '--progress', '--progress bar', '--progress screen', '--progress=plain'];
        foreach ($options as $option) {
            yield $option => [$option];
        }
    }

    #[DataProvider('linesWithoutATerminal')]
    public function testWithoutATerminalLinesSayHowFarItIs(string $option): void
    {
        $pattern = "~^2/2 done, 0 failed, [\\d.]+/s, ETA 0:00\n\$~D";
        $words = [...explode(' ', $option), 'true', ':::', 'a', 'b'];
        self::assertMatchesRegularExpression($pattern, $this->spindle($words)->getErrorOutput());

        $dumb = $this->session("TERM=dumb \$SPINDLE run {$option} true ::: a b");
        self::assertMatchesRegularExpression(str_replace("\n", "\r\n", $pattern), $dumb->all());
    }

    public function testTheFailedJobsAreNamedAndTheRestIsCounted(): void
    {
        $process = $this->spindle(['-j1', '--progress=plain', 'exit {}', ':::', '0', '3']);
        self::assertMatchesRegularExpression(
            "~^spindle: job 2 failed: exit code 3 after [\\d.]+ s: exit 3\n2/2 done, 1 failed~m",
            $process->getErrorOutput(),
        );

        $process = $this->spindle(['-j1', '--progress=plain', 'false', ':::', ...array_fill(0, 40, 'x')]);
        $lines = substr_count($process->getErrorOutput(), 'failed: exit code 1');
        preg_match_all('~^spindle: (\d+) more jobs? failed$~m', $process->getErrorOutput(), $counts);
        self::assertSame(40, $lines + array_sum(array_map(intval(...), $counts[1])));
    }

    public function testAMisspelledModeIsRunAsAProgramAndTheMessageListsTheModes(): void
    {
        $advice = ". bars is not a mode of --progress; its modes are bar, screen, plain, json, none\n";
        $process = $this->spindle(['--progress', 'bars', 'echo', ':::', 'a']);
        self::assertStringContainsString($advice, $process->getErrorOutput());

        $process = $this->spindle(['--progress', 'bar', 'bars', 'echo', ':::', 'a']);
        self::assertStringContainsString('No such program', $process->getErrorOutput());
        self::assertStringNotContainsString('is not a mode', $process->getErrorOutput());
    }

    public function testTheEndOfABarListsSlowAndFailedJobsWithTheCommandThatRunsThemAgain(): void
    {
        $line = 'sleep {}; exit 3';
        $session = $this->session("\$SPINDLE run -j2 --joblog log --progress bar '{$line}' ::: 0 0.2", 200);
        self::assertSame(2, $session->wait());

        self::assertMatchesRegularExpression(
            '~^spindle: slowest jobs:\n  \d\.\d s  job \d: sleep 0(\.2)?; exit 3\n(.*\n)?'
            . 'spindle: 2 jobs failed; to run them again:\n'
            . '  job \d, exit code 3: sleep 0(\.2)?; exit 3\n  job \d, exit code 3: sleep 0(\.2)?; exit 3\n'
            . 'spindle: to run all failed jobs again: \\S*spindle(\\.phar)? run --resume-failed -j2 --joblog log'
            . ' --progress~m',
            $session->terminal->text(),
        );
    }

    public function testTheLastLineWithoutATerminalIsTheCommandThatRunsFailedJobsAgain(): void
    {
        $words = ['-j1', '--joblog', 'log', 'exit {}', ':::', '0', '3'];
        $process = $this->spindle(['--progress', 'plain', ...$words]);
        self::assertMatchesRegularExpression(
            '~\n2/2 done, 1 failed.*\nspindle: to run all failed jobs again: \S+ run --resume-failed --progress plain'
            . " -j1 --joblog log 'exit \{\}' ::: 0 3\n$~D",
            $process->getErrorOutput(),
        );
        foreach (['json', 'none'] as $mode) {
            $error = $this->spindle(['--progress', $mode, ...$words])->getErrorOutput();
            self::assertStringNotContainsString('again', $error);
        }
    }

    #[RequiresPhpExtension('pcntl')]
    #[TestWith(['bar'])]
    #[TestWith(['screen'])]
    public function testATerminationEndsARunWhoseTerminalIsStopped(string $mode): void
    {
        $session = $this->session("exec \$SPINDLE run --progress {$mode} sleep ::: 60");
        $session->waitFor('~1 (of \d+ )?running~');
        $session->type("\x13");
        Eventually::holdsByItself(static fn(): bool => !$session->acceptsOutput(), 'it is stopped', 10.0);

        $this->signalRun(\SIGTERM);

        $this->assertNothingRuns();
        self::assertSame(143, $session->wait());
    }

    #[RequiresPhpExtension('pcntl')]
    #[TestWith(['none'])]
    #[TestWith(['bar'])]
    #[TestWith(['screen'])]
    public function testATerminationEndsARunWhoseTerminalIsFull(string $mode): void
    {
        $session = $this->session("exec \$SPINDLE run --progress {$mode} 'seq 100000 {}' ::: 200000");
        Eventually::holdsByItself(static fn(): bool => !$session->acceptsOutput(), 'it is full', 10.0);

        $this->signalRun(\SIGTERM);

        $this->assertNothingRuns();
        self::assertSame(143, $session->wait());
    }

    public function testOutputToAnotherTerminalHasNoCodesThatClearTheProgress(): void
    {
        $results = $this->session('mv tty results; echo ready; read line');
        $results->waitFor('~ready~');
        $line = 'until [ -e go ]; do sleep 0.05; done; echo {}';
        $session = $this->session("\$SPINDLE run --progress bar -j1 '{$line}' ::: a b > \"\$(cat results)\"");
        $session->waitFor('~1 (of \d+ )?running~');
        $this->file('go', '');
        self::assertSame(0, $session->wait());
        $results->waitFor('~^b$~m');

        self::assertSame("ready\r\na\r\nb\r\n", $results->bytes);
    }

    public function testNothingIsShownUnlessItIsAskedFor(): void
    {
        self::assertOutcome(0, '', $this->spindle(['true', ':::', 'a']));
        self::assertOutcome(0, '', $this->spindle(['--progress', 'none', 'true', ':::', 'a']));
    }

    private function session(string $line, int $columns = 80, int $rows = 24): TerminalSession
    {
        $environment = [self::MARK => $this->mark, 'SPINDLE' => Program::path()];

        return new TerminalSession($line, $this->path(), $environment, $columns, $rows);
    }
}

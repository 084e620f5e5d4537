<?php

declare(strict_types=1);

namespace Spindle\Tests\Cli;

use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\Attributes\TestWith;
use Spindle\Cli\Internal\OutputStream;
use Spindle\Cli\Internal\Run\Input\InputWait;
use Spindle\Cli\Internal\Run\Interrupts;
use Spindle\Cli\Internal\Run\JobControl;
use Spindle\Cli\Internal\Run\Output\Console;
use Spindle\Cli\Internal\Run\Output\ProgressMode;
use Spindle\Cli\Internal\Run\ProgressOptions;
use Spindle\Cli\Internal\Run\RunStatistics;
use Spindle\Command\CommandPool;
use Spindle\Tests\Eventually;
use Spindle\Tests\Host;
use Spindle\Tests\Processes;
use Symfony\Component\Process\InputStream;
use Symfony\Component\Process\Process;

use function Amp\delay;

#[RequiresPhpExtension('pcntl')]
final class InterruptTest extends SpindleCommandTestCase
{
    private const NOTICE = 'spindle: interrupted: no more jobs start, and running jobs may finish;'
        . " interrupt again to end them\n";

    /** A job that creates a file, then waits for a file "go". */
    private const JOB = 'touch started{}; while [ ! -e go ]; do sleep 0.05; done; echo {}';

    public function testOneInterruptLetsFinishWhatRunsAndStartsNoMore(): void
    {
        $process = $this->start(['-j2', '-k', '--joblog', 'log', self::JOB, ':::', '1', '2', '3', '4']);
        $this->waitForFile('started1');
        $this->waitForFile('started2');

        $process->signal(\SIGINT);
        self::waitForNotice($process);
        $this->file('go', '');
        $process->wait();

        self::assertInterrupted("1\n2\n", $process, '-j2 -k --joblog log');
        self::assertFileDoesNotExist($this->path('started3'));
        self::assertCount(3, (array) file($this->path('log')));
    }

    /** @param string $options options of the run, which the command that continues the run has as well */
    private static function assertInterrupted(string $output, Process $process, string $options): void
    {
        self::assertSame([130, $output], [$process->getExitCode(), $process->getOutput()]);
        $hint = "spindle: to run the jobs that have not finished: \\S+ run --resume {$options} '.*\n";
        self::assertMatchesRegularExpression('~^' . self::NOTICE . "{$hint}\$~D", $process->getErrorOutput());
    }

    public function testAfterAnInterruptNothingIsTriedAgain(): void
    {
        $process = $this->start(['-j1', '--retries', '5', self::JOB . ' >> tries; exit 1', ':::', '1']);
        $this->waitForFile('started1');

        $process->signal(\SIGINT);
        self::waitForNotice($process);
        $this->file('go', '');

        self::assertSame(130, $process->wait());
        self::assertStringEqualsFile($this->path('tries'), "1\n");
    }

    public function testAnInterruptEndsTheRunWhileALargeJobLogIsRead(): void
    {
        $process = $this->startWithLargeLog();

        $process->signal(\SIGINT);
        $process->wait();

        self::assertSame([true, \SIGINT], [$process->hasBeenSignaled(), $process->getTermSignal()]);
        self::assertSame('', $process->getErrorOutput());
    }

    public function testARequestToListJobsWaitsUntilALargeJobLogIsRead(): void
    {
        $process = $this->startWithLargeLog();

        $process->signal(\SIGUSR1);
        $process->wait();

        self::assertFalse($process->hasBeenSignaled());
        self::assertStringStartsWith("spindle: running jobs: 0, finished: 0\n", $process->getErrorOutput());
    }

    /** Returns while a run reads its job log. */
    private function startWithLargeLog(): Process
    {
        $log = fopen($this->path('log'), 'w');
        self::assertNotFalse($log);
        for ($i = 1; $i <= 600_000; ++$i) {
            fwrite($log, "{$i}\t:\t1796000000.000\t     0.001\t0\t2\t0\t0\techo {$i}\n");
        }
        fclose($log);
        $process = $this->start(['--joblog', 'log', '--resume', 'echo', ':::', '1']);
        $links = "/proc/{$process->getPid()}/fd";
        $isOpen = fn(): bool => str_contains((string) shell_exec("ls -l {$links} 2>&1"), $this->path('log'));
        Eventually::holdsByItself($isOpen, 'the job log is open', 10.0);

        return $process;
    }

    public function testAnInterruptIsHeardBeforeTheFirstJobStarts(): void
    {
        self::assertSame(130, Host::call(self::class . '::interruptAtOnce'));
    }

    public static function interruptAtOnce(): ?int
    {
        $statistics = new RunStatistics();
        $control = new JobControl(new CommandPool(1), new InputWait(), $statistics, 1);
        $console = new Console(
            OutputStream::standardOutput(),
            OutputStream::standardError(),
            new ProgressOptions(ProgressMode::None),
            $statistics,
            $control,
        );
        $interrupts = new Interrupts($console, $control, $statistics);
        $interrupts->handleTermination();
        posix_kill((int) getmypid(), \SIGINT);
        delay(0.01);

        return $interrupts->status;
    }

    public function testASecondInterruptEndsWhatRunsAndLogsNothingOfIt(): void
    {
        $process = $this->start(['-j2', '--joblog', 'log', self::JOB, ':::', '1', '2', '3']);
        $this->waitForFile('started1');
        $this->waitForFile('started2');

        $process->signal(\SIGINT);
        self::waitForNotice($process);
        $process->signal(\SIGINT);
        $process->wait();

        self::assertInterrupted('', $process, '-j2 --joblog log');
        self::assertCount(1, (array) file($this->path('log')));
        $this->assertNothingRuns();
    }

    public function testATerminationEndsWhatRuns(): void
    {
        $process = $this->start([self::JOB, ':::', '1']);
        $this->waitForFile('started1');

        $process->signal(\SIGTERM);
        $process->wait();

        self::assertOutcome(143, '', $process);
        $this->assertNothingRuns();
    }

    #[TestWith([''])]
    #[TestWith(['> out'])]
    public function testATerminationKeepsTheResultsOfFinishedJobs(string $redirection): void
    {
        $this->file('out', '');
        $script = '[ {} = 1 ] && exec sleep 5; echo {}';
        $process = $this->runUntilEnded(2, $redirection, ['-kj3', '--joblog', 'log', $script, ':::', '1', '2', '3']);

        $process->signal(\SIGTERM);

        self::assertSame(143, $process->wait());
        self::assertSame("2\n3\n", $process->getOutput() . file_get_contents($this->path('out')));
        self::assertCount(3, (array) file($this->path('log')));
    }

    /** @param list<string> $options */
    #[TestWith([[]])]
    #[TestWith([['--line-buffer']])]
    public function testNoLoggedJobHasLostItsOutputAtATermination(array $options): void
    {
        $values = array_map(strval(...), range(1, 8));
        $process = $this->start(['-j8', ...$options, '--joblog', 'log', self::JOB, ':::', ...$values]);
        array_map(fn(string $value) => $this->waitForFile("started{$value}"), $values);
        $pid = (int) $process->getPid();

        $process->signal(\SIGSTOP);
        $this->file('go', '');
        $running = fn(): array => array_filter(
            array_keys(Processes::withVariable(self::MARK, $this->mark)),
            static fn(int $other): bool => str_contains((string) @file_get_contents("/proc/{$other}/cmdline"), 'touch'),
        );
        Eventually::holdsByItself(static fn(): bool => array_diff($running(), [$pid]) === [], 'the jobs end', 10.0);
        $process->signal(\SIGTERM);
        $process->signal(\SIGCONT);
        $process->wait(); // the status is 0 if the run reads all results before it handles the signal

        $logged = array_map(intval(...), \array_slice((array) file($this->path('log')), 1));
        self::assertSame([], array_diff($logged, array_map(intval(...), explode("\n", $process->getOutput()))));
    }

    public function testSignalsThatWereIgnoredAtTheStartStayIgnored(): void
    {
        $ignoring = ['sh', '-c', 'trap "" INT TERM USR1; exec "$@"', 'sh', \PHP_BINARY, Program::path()];
        $process = new Process(
            [...$ignoring, 'run', '-j1', self::JOB, ':::', '1', '2'],
            $this->path(),
            [self::MARK => $this->mark],
            '',
            30.0,
        );
        $process->start();
        $this->waitForFile('started1');

        array_map($process->signal(...), [\SIGINT, \SIGINT, \SIGTERM, \SIGUSR1]);
        $this->file('go', '');
        $process->wait();

        self::assertOutcome(0, "1\n2\n", $process);
    }

    public function testABackgroundJobOfAScriptIsNotInterrupted(): void
    {
        $this->script('background', <<<'SH'
            $SPINDLE run 'touch started; while [ ! -e go ]; do sleep 0.05; done; echo' ::: x &
            until [ -e started ]; do sleep 0.05; done
            kill -INT $!
            touch go
            wait $!
            SH);

        self::assertOutcome(0, "x\n", $this->shell('./background'));
    }

    public function testUsr1ListsTheJobsThatRun(): void
    {
        $process = $this->start(['-j2', '-k', self::JOB, ':::', '1', '2', '3']);
        $this->waitForFile('started1');
        $this->waitForFile('started2');

        $process->signal(\SIGUSR1);
        $job = static fn(string $input): string => str_replace('{}', $input, self::JOB);
        $list = "spindle: running jobs: 2, finished: 0\n"
            . "spindle: running: job 1: {$job('1')}\nspindle: running: job 2: {$job('2')}\n";
        Eventually::holdsByItself(static fn(): bool => $process->getErrorOutput() === $list, 'they are listed', 10.0);
        $this->file('go', '');
        $process->wait();

        self::assertOutcome(0, "1\n2\n3\n", $process, $list);
    }

    public function testAnInterruptEndsTheWaitForASlowInput(): void
    {
        $input = new InputStream();
        $input->write("1\n");
        $process = $this->start(['echo'], $input);
        Eventually::holdsByItself(static fn(): bool => $process->getOutput() === "1\n", 'the first job has run', 10.0);

        $process->signal(\SIGINT);
        Eventually::holdsByItself(static fn(): bool => !$process->isRunning(), 'it has ended', 10.0);
        $input->close();
        $process->wait();

        self::assertOutcome(130, "1\n", $process, self::NOTICE);
    }

    public function testATerminationEndsTheWaitForASlowReader(): void
    {
        posix_mkfifo($this->path('pipe'), 0o600);
        $reader = fopen($this->path('pipe'), 'r+'); // never read from
        $process = $this->runUntilEnded(1, '> pipe', ['head -c {} /dev/zero', ':::', '1000000']);

        $process->signal(\SIGTERM);

        self::assertSame(143, $process->wait());
        self::assertIsResource($reader);
    }

    #[TestWith([\SIGINT, 130, '2> pipe', 'head -c 1000000 /dev/zero >&2'])]
    #[TestWith([\SIGTERM, 143, '2> pipe', 'head -c 1000000 /dev/zero >&2'])]
    #[TestWith([\SIGINT, 130, '> pipe 2>&1', 'head -c 1000000 /dev/zero'])]
    #[TestWith([\SIGTERM, 143, '> pipe 2>&1', 'head -c 1000000 /dev/zero'])]
    public function testSignalsEndTheWaitForASlowReaderOfStandardError(
        int $signal,
        int $status,
        string $redirection,
        string $job,
    ): void {
        posix_mkfifo($this->path('pipe'), 0o600);
        $pipe = fopen($this->path('pipe'), 'r+'); // never read from
        self::assertIsResource($pipe);
        $process = $this->redirected($redirection, ['-j2', "[ {} = 1 ] || exec sleep 60; {$job}", ':::', '1', '2']);
        $pid = (int) $process->getPid();
        Eventually::holdsByItself(static function () use ($pipe): bool {
            [$none, $writable] = [null, [$pipe]];

            return stream_select($none, $writable, $none, 0) === 0;
        }, 'the pipe is full', 10.0);

        Eventually::holdsByItself(
            static fn(): bool => !$process->isRunning() || !posix_kill($pid, $signal),
            'it has ended',
            10.0,
        );

        self::assertSame($status, $process->getExitCode());
        $this->assertNothingRuns();
    }

    public function testWithoutPcntlAnInterruptEndsAllAtOnce(): void
    {
        $process = new Process(
            [\PHP_BINARY, '-d', 'disable_functions=pcntl_signal', Program::path(), 'run', self::JOB, ':::', '1'],
            $this->path(),
            [self::MARK => $this->mark],
            '',
            30.0,
        );
        $process->start();
        $this->waitForFile('started1');

        $process->signal(\SIGINT);
        $process->wait(static fn() => null);

        self::assertSame(130, $process->getExitCode());
        $this->assertNothingRuns();
    }

    public function testAnInterruptAtATerminalDoesNotReachTheJobs(): void
    {
        // Ctrl-C goes to all processes in the terminal's foreground, which must not include the jobs.
        $input = new InputStream();
        $process = new Process(
            ['script', '-qefc', Program::path() . " run -j1 '" . self::JOB . "' ::: 1 2", '/dev/null'],
            $this->path(),
            [self::MARK => $this->mark],
            $input,
            30.0,
        );
        $process->start();
        $this->waitForFile('started1');

        $input->write("\x03");
        Eventually::holdsByItself(
            static fn(): bool => str_contains($process->getOutput(), rtrim(self::NOTICE)),
            'it says so',
            10.0,
        );
        $this->file('go', '');
        $input->close();
        $process->wait();

        self::assertSame(130, $process->getExitCode());
        self::assertMatchesRegularExpression('/^1\r$/m', $process->getOutput());
        self::assertFileDoesNotExist($this->path('started2'));
    }

    private static function waitForNotice(Process $process): void
    {
        Eventually::holdsByItself(
            static fn(): bool => str_ends_with($process->getErrorOutput(), "\n"),
            'it says so',
            10.0,
        );
        self::assertSame(self::NOTICE, $process->getErrorOutput());
    }

    /**
     * Starts the command, and returns when a number of jobs have ended.
     *
     * @param list<string> $arguments after `spindle run -vvv`
     */
    private function runUntilEnded(int $jobs, string $redirection, array $arguments): Process
    {
        $process = $this->redirected($redirection, ['-vvv', ...$arguments]);
        Eventually::holdsByItself(
            static fn(): bool => substr_count($process->getErrorOutput(), 'Ended: ') === $jobs,
            'the jobs have ended',
            10.0,
        );

        return $process;
    }

    /** @param list<string> $arguments after `spindle run` */
    private function redirected(string $redirection, array $arguments): Process
    {
        $process = new Process(
            ['sh', '-c', "exec \"\$@\" {$redirection}", 'sh', Program::path(), 'run', ...$arguments],
            $this->path(),
            [self::MARK => $this->mark],
            '',
            30.0,
        );
        $process->start();

        return $process;
    }
}

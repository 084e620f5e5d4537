<?php

declare(strict_types=1);

namespace Spindle\Tests\Cli;

use PHPUnit\Framework\Attributes\After;
use PHPUnit\Framework\Attributes\Before;
use Spindle\Tests\Eventually;
use Spindle\Tests\Fork\ProgramResult;
use Spindle\Tests\JsonMessages;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Processes;
use Symfony\Component\Process\InputStream;
use Symfony\Component\Process\Process;

/** Runs the command `spindle` in a separate folder. After each test, none of its processes is left. */
trait RunsSpindle
{
    use OwnDirectory;

    protected const MARK = 'SPINDLE_TEST_PROGRAM';

    protected string $mark = '';

    #[Before]
    protected function makeMark(): void
    {
        $this->mark = getmypid() . '.' . bin2hex(random_bytes(6));
    }

    #[After]
    protected function findNothingRunning(): void
    {
        try {
            $this->assertNothingRuns();
        } finally {
            foreach (array_keys(Processes::withVariable(self::MARK, $this->mark)) as $pid) {
                posix_kill($pid, \SIGKILL);
            }
        }
    }

    /** @param list<string> $arguments after `spindle run` */
    protected function spindle(array $arguments, string $input = ''): ProgramResult
    {
        return $this->ran(['run', ...$arguments], $input);
    }

    /**
     * Runs the command to its end, as {@see Program::run()} does. Tests that need a process use process().
     *
     * @param list<string> $arguments after `spindle`
     */
    protected function ran(array $arguments, string $input = ''): ProgramResult
    {
        return Program::run($arguments, $this->path(), [self::MARK => $this->mark], $input);
    }

    /**
     * @param list<string>                     $arguments after `spindle run`
     * @param string|resource|InputStream|null $input
     */
    protected function start(array $arguments, mixed $input = null): Process
    {
        $process = $this->process(['run', ...$arguments], $input);
        $process->start();

        return $process;
    }

    /**
     * @param list<string>                     $arguments after `spindle`
     * @param string|resource|InputStream|null $input
     */
    protected function process(array $arguments, mixed $input = null): Process
    {
        return new Process(
            [\PHP_BINARY, '-d', 'error_reporting=-1', '-d', 'display_errors=stderr', Program::path(), ...$arguments],
            $this->path(),
            [self::MARK => $this->mark],
            $input ?? '',
            30.0,
        );
    }

    /** Runs a shell line in which `$SPINDLE` is the program, and `$PHP` the PHP of the tests. */
    protected function shell(string $line, float $timeout = 30.0): Process
    {
        $process = new Process(
            ['bash', '-c', $line],
            $this->path(),
            [self::MARK => $this->mark, 'SPINDLE' => Program::path(), 'PHP' => \PHP_BINARY],
            '',
            $timeout,
        );
        $process->run();

        return $process;
    }

    protected function waitForFile(string $name): void
    {
        Eventually::holdsByItself(fn(): bool => file_exists($this->path($name)), "there is a file {$name}", 10.0);
    }

    /** Sends a signal to each `spindle run` with the option `--progress`. */
    protected function signalRun(int $signal): void
    {
        foreach (array_keys(Processes::withVariable(self::MARK, $this->mark)) as $pid) {
            if (str_contains((string) @file_get_contents("/proc/{$pid}/cmdline"), "\0--progress\0")) {
                posix_kill($pid, $signal);
            }
        }
    }

    protected function assertNothingRuns(): void
    {
        Eventually::holdsByItself(
            fn(): bool => Processes::withVariable(self::MARK, $this->mark) === [],
            'nothing runs',
            5.0,
        );
    }

    /** @param string $errors expected standard error */
    protected static function assertOutcome(
        int $status,
        string $output,
        Process|ProgramResult $process,
        string $errors = '',
    ): void {
        self::assertSame(
            [$status, $output, $errors],
            [
                $process->getExitCode(),
                $process->getOutput(),
                JsonMessages::withoutLocation($process->getErrorOutput()),
            ],
        );
    }
}

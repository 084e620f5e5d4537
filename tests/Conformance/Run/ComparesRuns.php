<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Run;

use Spindle\Tests\Cli\RunsGnuParallel;
use Spindle\Tests\Fork\ProgramResult;
use Spindle\Tests\Scale;
use Symfony\Component\Process\Process;

/**
 * Compares runs of `spindle run` with recorded outcomes, and some of them with GNU parallel where the recorded
 * version is installed. An outcome is the standard output, the exit status, and the contents of files after the run.
 */
trait ComparesRuns
{
    use RunsGnuParallel;

    /** Columns of a job log that both tools must have in common: Seq, Send, Receive, Exitval, Signal, Command. */
    private const LOG_COLUMNS = [0 => true, 4 => true, 5 => true, 6 => true, 7 => true, 8 => true];

    /**
     * @param list<string>                      $words
     * @param array<string, string|null>        $files  contents by name, for a job log without its times; null for a
     *                                                  file that must not exist
     * @param string|null                $errors standard error of `spindle run`; null if it does not matter
     */
    private function compare(
        array $words,
        string $output,
        int $status,
        array $files = [],
        string $input = '',
        ?string $errors = null,
    ): void {
        $own = $this->spindle($words, $input);

        $this->assertRun($output, $status, $files, $own);
        if ($errors !== null) {
            self::assertSame($errors, $own->getErrorOutput());
        }
        if (Scale::includes($words) && self::hasRecordedVersion()) {
            $this->removeDirectory();
            $this->directory = '';
            $this->agreeToCite();
            $this->prepare();
            $this->assertRun($output, $status, $files, $this->runParallel($words, $input));
        }
    }

    /** Creates the files that a line reads. */
    private function prepare(): void {}

    /** @param list<string> $words */
    private function runParallel(array $words, string $input): Process
    {
        $process = new Process(
            [self::PARALLEL, ...$words],
            $this->path(),
            $this->parallelEnvironment(),
            $input,
            60.0,
        );
        $process->run();

        return $process;
    }

    /** @param array<string, string|null> $files */
    private function assertRun(string $output, int $status, array $files, Process|ProgramResult $process): void
    {
        $contents = [];
        foreach ($files as $name => $content) {
            $contents[$name] = is_file($this->path($name)) ? $this->content($name) : null;
        }
        self::assertSame(
            [$output, $status, $files],
            [$process->getOutput(), $process->getExitCode(), $contents],
            $process->getErrorOutput(),
        );
    }

    private function content(string $name): string
    {
        $content = (string) file_get_contents($this->path($name));
        if (!str_ends_with($name, '.log')) {
            return $content;
        }
        $lines = '';
        foreach (explode("\n", rtrim($content, "\n")) as $line) {
            $lines .= implode("\t", array_intersect_key(explode("\t", $line), self::LOG_COLUMNS)) . "\n";
        }

        return $lines;
    }
}

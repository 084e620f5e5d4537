<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Run;

use PHPUnit\Framework\Attributes\Before;
use Spindle\Tests\Cli\RunsGnuParallel;
use Spindle\Tests\Scale;
use Symfony\Component\Process\Process;

/**
 * Runs recorded lines with `spindle run`, and some of them with the other tool where its recorded version is installed.
 * Without the other tool, the outcome is compared with the recorded one only.
 */
trait ComparesTools
{
    use RunsGnuParallel;

    private const FILES = [
        'l1' => "a\nb\nc\n",
        'l2' => "1\n2\n",
        'c1' => "x,y z\nu,v\n",
        'h1' => "n,v\n1,2\n3,4\n",
        't1' => "a\tb\n",
        'e1' => "echo a\n\necho b\n",
    ];

    #[Before]
    protected function createFiles(): void
    {
        foreach (self::FILES as $name => $content) {
            $this->file($name, $content);
        }
    }

    /**
     * @param list<string> $ownOptions   of `spindle run`, before the words of the line
     * @param list<string> $otherCommand the other tool with its options
     */
    private function compare(RecordedLine $line, array $ownOptions, array $otherCommand): void
    {
        $own = $this->spindle([...$ownOptions, ...$line->words], $line->input);
        if ($line->ownOutput === null) {
            self::assertSame(
                [$line->output, $line->status],
                [$own->getOutput(), $own->getExitCode()],
                $own->getErrorOutput(),
            );
        } elseif ($line->ownStatus === 255) {
            self::assertSame(['', 255], [$own->getOutput(), $own->getExitCode()], $own->getErrorOutput());
            self::assertStringContainsString($line->ownOutput, $own->getErrorOutput());
        } else {
            self::assertSame(
                [$line->ownOutput, $line->ownStatus],
                [$own->getOutput(), $own->getExitCode()],
                $own->getErrorOutput(),
            );
        }
        // Perl needs long to start. Each run compares another share of the lines.
        $isInstalled = $otherCommand[0] === 'xargs' || self::hasRecordedVersion();
        if ($isInstalled && Scale::includes($line->words)) {
            $this->assertOtherTool($line, $otherCommand);
        }
    }

    /** @param list<string> $command */
    private function assertOtherTool(RecordedLine $line, array $command): void
    {
        $process = new Process(
            [...$command, ...$line->words],
            $this->path(),
            ['LC_ALL' => 'C', ...$this->parallelEnvironment()],
            $line->input,
            60.0,
        );
        $process->run();

        self::assertSame(
            [$line->output, $line->status],
            [$process->getOutput(), $process->getExitCode()],
            "{$command[0]}: {$process->getErrorOutput()}",
        );
    }
}

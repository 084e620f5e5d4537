<?php

declare(strict_types=1);

namespace Spindle\Tests\Fork;

use Symfony\Component\Process\Process;

/** How a program ended, and what it wrote. */
final readonly class ProgramResult
{
    public function __construct(private ?int $exitCode, private string $output, private string $errorOutput) {}

    public static function of(Process $process): self
    {
        return new self($process->getExitCode(), $process->getOutput(), $process->getErrorOutput());
    }

    /** A signal that ended the program counts as 128 plus its number. */
    public function getExitCode(): ?int
    {
        return $this->exitCode;
    }

    public function getOutput(): string
    {
        return $this->output;
    }

    public function getErrorOutput(): string
    {
        return $this->errorOutput;
    }
}

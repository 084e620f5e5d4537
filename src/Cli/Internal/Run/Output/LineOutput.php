<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Output;

use Spindle\Cli\Internal\Run\Input\InputJob;
use Spindle\Cli\Internal\Run\Input\TextTemplate;
use Spindle\Command\Command;
use Spindle\Command\CommandResult;
use Spindle\Internal\FreeMemory;

/** The option --line-buffer: prints the lines of running jobs as soon as they are complete. */
final class LineOutput implements ResultWriter
{
    /** @var array<int, array{LineBuffer, LineBuffer}> standard output and error of running jobs, by job number */
    private array $buffers = [];

    public function __construct(
        private readonly Console $console,
        private readonly ?TextTemplate $tag,
        private readonly bool $printsCommand,
    ) {}

    public function start(InputJob $job, Command $command): Command
    {
        $tag = $this->tag?->text($job);
        $out = new LineBuffer($tag);
        $error = new LineBuffer($tag);
        $this->buffers[$job->sequence] = [$out, $error];
        if ($this->printsCommand) {
            $this->console->out($tag === null ? "{$job->printedCommand()}\n" : "{$tag}\t{$job->printedCommand()}\n");
        }

        return $command
            ->withStdout($this->printer($out, $this->console->out(...)))
            ->withStderr($this->printer($error, $this->console->error(...)));
    }

    public function write(InputJob $job, CommandResult $result): int
    {
        [$out, $error] = $this->buffers[$job->sequence];
        unset($this->buffers[$job->sequence]);
        $this->console->out($out->end());
        $this->console->error($error->end());

        return $out->length;
    }

    /**
     * @param \Closure(string): void $print
     *
     * @return \Closure(string): void
     */
    private function printer(LineBuffer $buffer, \Closure $print): \Closure
    {
        return function (string $bytes) use ($buffer, $print): void {
            foreach ($buffer->parts($bytes) as $part) {
                $lines = $buffer->add($part, $this->isFull());
                $buffer->printedBytes = \strlen($lines);
                $print($lines);
                $buffer->printedBytes = 0;
            }
        };
    }

    /** Returns whether incomplete lines are printed too, because the lines of all jobs need too much memory. */
    private function isFull(): bool
    {
        $bytes = 0;
        foreach ($this->buffers as [$out, $error]) {
            $bytes += $out->heldBytes() + $error->heldBytes();
        }

        return $bytes > FreeMemory::quarterOfLimit(\PHP_INT_MAX);
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

use Spindle\Command\Command;

/** A job: the values of one or more records of the input, and the command that contains these values. */
final class InputJob
{
    /**
     * @param int              $sequence number of the job, starting at 1
     * @param int              $slot     number of the job's slot; 0 if no slot numbers are needed
     * @param int|float|string $id       id of the task with --jsonl; otherwise 0
     * @param string|null      $logged   command for the job log; null to log the printed command, with {%} unreplaced
     * @param string|null      $printed  command for printing; null to make the text from $template or $command
     * @param int              $sent     bytes of the command's standard input; with --round-robin, the number is set
     *                                   by {@see JobInputs::finished()} when the command has ended
     * @param CommandTemplate|null $template template from which the command was made; null for none
     * @param string|null      $block    name of the block that the command reads, for messages; null for none
     */
    public function __construct(
        public readonly int $sequence,
        public readonly JobValues $values,
        public readonly Command $command,
        public readonly int $slot = 0,
        public readonly int|float|string $id = 0,
        private readonly ?string $logged = null,
        private readonly ?string $printed = null,
        public int $sent = 0,
        private readonly ?CommandTemplate $template = null,
        private readonly ?string $block = null,
    ) {}

    /** Returns the job with another command. The printed and the logged command stay the same. */
    public function withCommand(Command $command, int $sent = 0, ?string $block = null): self
    {
        return new self(
            $this->sequence,
            $this->values,
            $command,
            $this->slot,
            $this->id,
            $this->loggedCommand(),
            $this->printedCommand(),
            $sent,
            block: $block,
        );
    }

    public function name(): string
    {
        return "job {$this->sequence}" . ($this->block === null ? '' : " ({$this->block})");
    }

    /** Returns roughly how many bytes of memory the values and the command need. */
    public function bytes(): int
    {
        return 2 * $this->values->bytes() + \strlen($this->command->line ?? '');
    }

    public function printedCommand(): string
    {
        return $this->printed
            ?? $this->template?->text($this->values->list(), $this->sequence, $this->slot)
            ?? ShellQuotes::text($this->command);
    }

    public function loggedCommand(): string
    {
        return $this->logged
            ?? ($this->template?->usesSlot() === true
                ? $this->template->text($this->values->list(), $this->sequence, null)
                : $this->printedCommand());
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run;

use Spindle\Cli\Internal\GivenOptions;
use Spindle\Cli\Internal\Run\Input\BadRecordException;
use Spindle\Cli\Internal\Run\Input\InputJob;
use Spindle\Cli\Internal\Run\Input\Replacement;
use Spindle\Cli\Internal\Run\Output\OutputMode;
use Spindle\Cli\Internal\UsageException;
use Symfony\Component\Console\Input\InputInterface;

/** Reads and validates the options of `spindle run`. Opens the input, but no file for writing. */
final class RunOptions
{
    /** Name of the console argument with all words after the options: the command, and the lists after ::: or ::::. */
    public const WORDS = 'template';

    private function __construct(
        public readonly InputOptions $input,
        public readonly StartOptions $start,
        public readonly OutcomeOptions $outcome,
        public readonly OutputOptions $output,
        public readonly ProgressOptions $progress,
    ) {}

    /** @throws UsageException when an option or a combination is invalid, or the input can't be opened */
    public static function of(InputInterface $input): self
    {
        $given = new GivenOptions($input);
        /** @var list<string> $words */
        $words = $input->getArgument(self::WORDS);
        $inputOptions = InputOptions::of($given, $words);
        $output = OutputOptions::of($given, $inputOptions->strings);

        return new self(
            input: $inputOptions,
            start: StartOptions::of($given, $words, $inputOptions),
            outcome: OutcomeOptions::of($given, $inputOptions),
            output: $output,
            progress: ProgressOptions::of($given, $words),
        );
    }

    public function usesSlot(): bool
    {
        return $this->input->format->usesSlot()
            || $this->start->environment->usesSlot()
            || $this->output->tag?->uses(Replacement::SLOT) === true
            || $this->outcome->results?->usesSlot() === true;
    }

    /** @throws BadRecordException when the path of a job's folder or of its results contains a NUL byte */
    public function checkPaths(InputJob $job): void
    {
        $this->start->environment->directory?->checkPath($job);
        $this->outcome->results?->template->checkPath($job);
    }

    /** Returns whether jobs must be created just before their starts, because they depend on the time or other jobs. */
    public function dependsOnStartTime(): bool
    {
        return $this->usesSlot()
            || $this->output->tracesCommand
            || ($this->output->printsCommand && $this->output->mode !== OutputMode::Grouped)
            || $this->start->delay > 0
            || $this->start->machine !== null
            || $this->start->timeLimit->isAdaptive()
            || $this->outcome->halt !== null;
    }
}

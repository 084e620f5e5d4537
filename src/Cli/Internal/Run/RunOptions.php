<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run;

use Spindle\Cli\Internal\GivenOptions;
use Spindle\Cli\Internal\UsageException;
use Symfony\Component\Console\Input\InputInterface;

/** The validated options of `spindle run`, in groups. The input has been opened, but no file for writing. */
final class RunOptions
{
    /** Argument: the command template, and the lists of arguments and files. */
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
        $output = OutputOptions::of($given);
        $outcome = OutcomeOptions::of($given);

        return new self(
            input: InputOptions::of($given, $words),
            start: StartOptions::of($given),
            outcome: $outcome,
            output: $output,
            progress: ProgressOptions::of($given, $words),
        );
    }

    /** Returns whether a job or its start depends on earlier jobs or the time, so that no job is created in advance. */
    public function dependsOnStartTime(): bool
    {
        return $this->input->format->usesSlot()
            || $this->start->delay > 0
            || $this->start->timeLimit->isAdaptive()
            || $this->outcome->halt !== null;
    }
}

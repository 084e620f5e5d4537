<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run;

use Spindle\Cli\Internal\GivenOptions;
use Spindle\Cli\Internal\Run\Input\InputJob;
use Spindle\Cli\Internal\Run\Input\ReplacementStrings;
use Spindle\Cli\Internal\Run\Input\TextTemplate;
use Spindle\Cli\Internal\Run\Output\OutputFailedException;
use Spindle\Cli\Internal\UsageException;
use Spindle\Command\Command;

/** The working directory of jobs, and their variables PARALLEL_SEQ and PARALLEL_JOBSLOT. */
final class JobSurroundings
{
    private const SEQUENCE = 'PARALLEL_SEQ';
    private const SLOT = 'PARALLEL_JOBSLOT';

    private function __construct(
        private readonly ?TextTemplate $directory,
        private readonly bool $hasSequence,
        private readonly bool $hasSlot,
    ) {}

    /**
     * @param list<string> $words of the command. Variables that neither they nor --env name are not set, because each
     *                            variable makes the start of a job slower
     *
     * @throws UsageException
     */
    public static function of(GivenOptions $given, array $words, ReplacementStrings $strings): self
    {
        $directory = $given->text('work-dir');
        if ($directory !== null && str_starts_with($directory, '...')) {
            throw UsageException::option('--work-dir', $directory, 'a folder; temporary ones are not created');
        }
        $names = $given->texts('env');
        foreach ($names as $name) {
            if (getenv("BASH_FUNC_{$name}%%") !== false) {
                throw new UsageException(
                    "option --env: '{$name}' is a function of bash, which /bin/sh does not have; give the command as"
                    . " bash -c '{$name} \"\$@\"' bash",
                );
            }
        }
        $text = implode(' ', [...$names, ...$words]);

        return new self(
            $directory === null ? null : new TextTemplate('--work-dir', $directory, $strings),
            str_contains($text, self::SEQUENCE),
            str_contains($text, self::SLOT),
        );
    }

    public function usesSlot(): bool
    {
        return $this->hasSlot || $this->directory?->usesSlot() === true;
    }

    /** @throws OutputFailedException when the working directory can't be created */
    public function addTo(Command $command, InputJob $job): Command
    {
        $variables = ($this->hasSequence ? [self::SEQUENCE => (string) $job->sequence] : [])
            + ($this->hasSlot ? [self::SLOT => (string) $job->slot] : []);
        if ($variables !== []) {
            $command = $command->withEnvironment($variables);
        }
        if ($this->directory === null) {
            return $command;
        }
        $directory = $this->directory->text($job);
        error_clear_last();
        if (!is_dir($directory) && !@mkdir($directory, recursive: true) && !is_dir($directory)) {
            throw OutputFailedException::lastError("the folder '{$directory}'");
        }

        return $command->withWorkingDirectory($directory);
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run;

use Spindle\Cli\Internal\GivenOptions;
use Spindle\Cli\Internal\OutputFailedException;
use Spindle\Cli\Internal\Run\Input\InputJob;
use Spindle\Cli\Internal\Run\Input\Replacement;
use Spindle\Cli\Internal\Run\Input\ReplacementStrings;
use Spindle\Cli\Internal\Run\Input\TextTemplate;
use Spindle\Cli\Internal\UsageException;
use Spindle\Command\Command;

/** The niceness and the working directory of jobs, and their variables PARALLEL_SEQ and PARALLEL_JOBSLOT. */
final class JobEnvironment
{
    private const SEQUENCE = 'PARALLEL_SEQ';
    private const SLOT = 'PARALLEL_JOBSLOT';

    private function __construct(
        private readonly ?int $nice,
        public readonly ?TextTemplate $directory,
        private readonly bool $hasSequence,
        private readonly bool $hasSlot,
    ) {}

    /**
     * @param list<string> $words words of the command. A variable is set only if these words or --env contain its
     *                            name, because each variable makes the start of a job slower
     *
     * @throws UsageException
     */
    public static function of(GivenOptions $given, array $words, ReplacementStrings $strings): self
    {
        $directory = $given->text('work-dir');
        if ($directory !== null && str_starts_with($directory, '...')) {
            throw UsageException::option('--work-dir', $directory, 'a folder; spindle run creates no temporary folder');
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
            self::nice($given),
            $directory === null ? null : new TextTemplate('--work-dir', $directory, $strings),
            str_contains($text, self::SEQUENCE),
            str_contains($text, self::SLOT),
        );
    }

    public function usesSlot(): bool
    {
        return $this->hasSlot || $this->directory?->uses(Replacement::SLOT) === true;
    }

    /**
     * Changes the niceness of this process, which the launchers and the jobs inherit.
     *
     * @throws UsageException when this process can't change its niceness
     */
    public function setNiceness(): void
    {
        $isPossible = \function_exists('pcntl_setpriority');
        if ($this->nice !== null && (!$isPossible || !@pcntl_setpriority($this->nice))) {
            throw new UsageException(
                "option --nice: can't set the niceness {$this->nice}; "
                    . ($isPossible ? 'a lower niceness needs a privilege' : 'it needs pcntl_setpriority() (ext-pcntl)'),
            );
        }
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

    private static function nice(GivenOptions $given): ?int
    {
        $nice = $given->text('nice');
        if ($nice === null) {
            return null;
        }
        if (preg_match('/^-?\d{1,2}$/D', $nice) !== 1 || (int) $nice < -20 || (int) $nice > 19) {
            throw UsageException::option('--nice', $nice, 'a niceness from -20 to 19');
        }

        return (int) $nice;
    }
}

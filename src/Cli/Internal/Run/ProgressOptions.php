<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run;

use Spindle\Cli\Internal\GivenOptions;
use Spindle\Cli\Internal\Run\Input\InputSource;
use Spindle\Cli\Internal\Run\Output\ProgressMode;
use Spindle\Cli\Internal\UsageException;

final class ProgressOptions
{
    /**
     * @param bool               $colours whether the command line allows colours on a terminal
     * @param bool               $hasKeys whether keys control the run; false if the input may be the terminal
     * @param ResumeCommand|null $resume null without a job log, or if the run can't be resumed
     */
    public function __construct(
        public readonly ProgressMode $mode,
        public readonly bool $colours = true,
        public readonly bool $hasKeys = true,
        public readonly ?ResumeCommand $resume = null,
    ) {}

    /**
     * @param list<string> $words the command, and the lists of arguments and files
     *
     * @throws UsageException
     */
    public static function of(GivenOptions $given, array $words): self
    {
        $isBar = $given->flag('bar') || $given->flag('eta');
        // With these options, --resume is refused: a job has another number or input in each run.
        $isRandom = $given->flag('shuf') || $given->flag('round-robin');

        return new self(
            ProgressMode::parse($given->text('progress') ?? ($isBar ? ProgressMode::Bar->value : null)),
            !$given->flag('no-ansi'),
            array_filter([...$given->texts('arg-file'), ...$words], self::mayBeTerminal(...)) === [],
            $given->text('joblog') === null || $isRandom ? null : ResumeCommand::ofThisProcess($given),
        );
    }

    private static function mayBeTerminal(string $path): bool
    {
        $target = str_starts_with($path, '/dev/') ? (string) realpath($path) : '';

        return InputSource::isStandardInput($path) || preg_match('~^/dev/(?:tty|pts/)~', $target) === 1;
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run;

use Spindle\Cli\Internal\GivenOptions;
use Spindle\Cli\Internal\GivenQueue;
use Spindle\Cli\Internal\Run\Input\CommandTemplate;
use Spindle\Cli\Internal\Run\Input\InputSource;
use Spindle\Cli\Internal\Run\Input\JobFormat;
use Spindle\Cli\Internal\Run\Input\JsonFormat;
use Spindle\Cli\Internal\Run\Input\LineFormat;
use Spindle\Cli\Internal\Run\Input\TemplateFormat;
use Spindle\Cli\Internal\Run\Output\ProgressMode;
use Spindle\Cli\Internal\UsageException;
use Spindle\Command\CommandCarrier;
use Spindle\Remote\RemoteCommands;
use Symfony\Component\Console\Input\InputInterface;

/** The validated options of `spindle run`. The input has been opened, but no file for writing. */
final class RunOptions
{
    /** Argument: the command template, and ::: with a list of arguments. */
    public const WORDS = 'template';

    /** Separates the command template from its arguments. */
    private const ARGUMENT_SEPARATOR = ':::';

    /** GNU parallel's words for further lists of arguments. Without a check, they would be used as arguments. */
    private const UNSUPPORTED_SEPARATORS = ['::::', ':::+', '::::+'];

    /**
     * @param float               $delay       minimum time between two starts, in seconds
     * @param string|null         $jobLog      path; null for no log
     * @param bool                $retryFailed whether jobs that failed according to the job log run again
     * @param string|null         $results     path of the folder; null for none
     * @param bool                $strict      whether the run ends at the first record that is not a command
     * @param CommandCarrier|null $carrier     runs the jobs on other machines; null to run them here
     */
    public function __construct(
        public readonly InputSource $source,
        public readonly JobFormat $format,
        public readonly JobsOption $jobs,
        public readonly TimeLimit $timeLimit,
        public readonly int $retries = 0,
        public readonly ?HaltRule $halt = null,
        public readonly float $delay = 0.0,
        public readonly bool $keepOrder = false,
        public readonly bool $tag = false,
        public readonly bool $json = false,
        public readonly bool $strict = false,
        public readonly bool $dryRun = false,
        public readonly ?string $jobLog = null,
        public readonly bool $resume = false,
        public readonly bool $retryFailed = false,
        public readonly ?string $results = null,
        public readonly ProgressMode $progress = ProgressMode::None,
        public readonly ?CommandCarrier $carrier = null,
    ) {}

    /** @throws UsageException when an option or a combination is invalid, or the input can't be opened */
    public static function of(InputInterface $input): self
    {
        $given = new GivenOptions($input);
        [$template, $arguments] = self::words($input);
        $given->rejectTogether('jsonl', 'tag', 'whose output lines already have ids');
        if ($template !== [] && $given->flag('jsonl')) {
            throw new UsageException('option --jsonl: the commands come from the input; remove the command template');
        }
        if (($given->flag('resume') || $given->flag('resume-failed')) && $given->text('joblog') === null) {
            throw new UsageException('option --resume: the job log to continue is missing; add --joblog FILE');
        }

        return new self(
            source: self::source($given, $arguments),
            format: self::format($template, $given->flag('jsonl')),
            jobs: self::jobs($given),
            timeLimit: TimeLimit::parse($given->text('timeout')),
            retries: $given->number('retries', 'a number of retries') ?? 0,
            halt: HaltRule::parse($given->text('halt')),
            delay: $given->duration('delay') ?? 0.0,
            keepOrder: $given->flag('keep-order'),
            tag: $given->flag('tag'),
            json: $given->flag('jsonl'),
            strict: $given->flag('strict'),
            dryRun: $given->flag('dry-run'),
            jobLog: self::jobLog($given),
            resume: $given->flag('resume') || $given->flag('resume-failed'),
            retryFailed: $given->flag('resume-failed'),
            results: self::results($given),
            progress: ProgressMode::parse($given->text('progress')),
            carrier: self::carrier($given),
        );
    }

    /** Returns whether a job or its start depends on earlier jobs or the time, so that no job is created in advance. */
    public function dependsOnStartTime(): bool
    {
        return $this->format->usesSlot() || $this->delay > 0 || $this->timeLimit->isAdaptive() || $this->halt !== null;
    }

    /**
     * @return array{list<string>, list<string>|null} the command template; the arguments after `:::`, null without it
     *
     * @throws UsageException when there are several lists of arguments
     */
    private static function words(InputInterface $input): array
    {
        /** @var list<string> $words */
        $words = $input->getArgument(self::WORDS);
        foreach ($words as $word) {
            if (\in_array($word, self::UNSUPPORTED_SEPARATORS, true)) {
                throw self::severalLists($word);
            }
        }
        $position = array_search(self::ARGUMENT_SEPARATOR, $words, true);
        if ($position === false) {
            return [$words, null];
        }
        $arguments = \array_slice($words, $position + 1);

        return \in_array(self::ARGUMENT_SEPARATOR, $arguments, true)
            ? throw self::severalLists(self::ARGUMENT_SEPARATOR)
            : [\array_slice($words, 0, $position), $arguments];
    }

    private static function severalLists(string $word): UsageException
    {
        return new UsageException(
            "argument '{$word}': only one list of arguments is supported; give it after one :::,"
            . ' or as a file with -a FILE',
        );
    }

    private static function jobs(GivenOptions $given): JobsOption
    {
        $default = $given->text('queue') === null ? null : (string) CommandCarrier::DEFAULT_CONCURRENCY;

        return JobsOption::parse($given->text('jobs') ?? $default);
    }

    private static function carrier(GivenOptions $given): ?CommandCarrier
    {
        $queue = $given->text('queue');
        foreach (['broker', 'broker-file'] as $name) {
            if ($queue === null && $given->text($name) !== null) {
                throw new UsageException(
                    "option --{$name}: without a queue, jobs run on this machine; add --queue NAME",
                );
            }
        }

        return $queue === null
            ? null
            : new RemoteCommands(
                GivenQueue::broker($given),
                GivenQueue::name('option --queue', $queue),
                GivenQueue::keys(),
            );
    }

    /** @throws UsageException when GNU parallel would append to a log of this name */
    private static function jobLog(GivenOptions $given): ?string
    {
        $path = $given->text('joblog');
        if ($path !== null && $path[0] === '+') {
            throw new UsageException(
                "option --joblog: '{$path}' is not allowed, because GNU parallel would append to the log;"
                . " add --resume to continue a log, or give ./{$path} for a file of that name",
            );
        }

        return $path;
    }

    /** @throws UsageException when the name has another meaning in GNU parallel */
    private static function results(GivenOptions $given): ?string
    {
        $path = $given->text('results');
        if ($path !== null && preg_match('/\.(?:csv|tsv|json)$/Di', $path) === 1) {
            throw new UsageException(
                "option --results: '{$path}' is not allowed, because GNU parallel would write a file;"
                . " give a folder such as {$path}/, or use --jsonl to print results as JSON",
            );
        }
        if ($path !== null && CommandTemplate::hasReplacement($path)) {
            throw new UsageException(
                "option --results: '{$path}' is not allowed; give a folder without replacement strings. Each job gets a"
                . ' subfolder that is named after its number',
            );
        }

        return $path;
    }

    /** @param list<string>|null $arguments */
    private static function source(GivenOptions $given, ?array $arguments): InputSource
    {
        $file = $given->text('arg-file');
        $separator = $given->flag('null') ? "\0" : "\n";
        if ($arguments !== null && $file !== null) {
            throw new UsageException(
                "option --arg-file: '{$file}' can't be combined with arguments after :::; give only one of them",
            );
        }
        if ($arguments !== null) {
            return InputSource::arguments($arguments);
        }

        return $file === null ? InputSource::standardInput($separator) : InputSource::file($file, $separator);
    }

    /** @param list<string> $template */
    private static function format(array $template, bool $json): JobFormat
    {
        if ($json) {
            return new JsonFormat();
        }
        if ($template === []) {
            return new LineFormat();
        }
        if ($template[0] === '') {
            throw new UsageException('the first word of the command is empty; give a program');
        }

        return new TemplateFormat(CommandTemplate::fromWords($template));
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run;

use Spindle\Cli\Internal\GivenOptions;
use Spindle\Cli\Internal\Run\Input\ReplacementStrings;
use Spindle\Cli\Internal\Run\Input\TextTemplate;
use Spindle\Cli\Internal\Run\Output\Console;
use Spindle\Cli\Internal\Run\Output\DirectOutput;
use Spindle\Cli\Internal\Run\Output\GroupedOutput;
use Spindle\Cli\Internal\Run\Output\JsonOutput;
use Spindle\Cli\Internal\Run\Output\LineOutput;
use Spindle\Cli\Internal\Run\Output\OutputMode;
use Spindle\Cli\Internal\Run\Output\ResultWriter;
use Spindle\Cli\Internal\UsageException;

final class OutputOptions
{
    /** Options that can't be combined with --jsonl, which prints an id in each line and no text between lines. */
    private const NOT_WITH_JSON = ['tag', 'tag-string', 'ungroup', 'line-buffer', 'print'];

    /**
     * @param TextTemplate|null $tag           text before each line of output; the writer adds a tab after this text
     * @param bool              $json          whether input and output are lines of JSON
     * @param bool              $printsCommand whether each command is printed before its output
     * @param bool              $tracesCommand whether the command is printed on standard error when the job starts
     */
    private function __construct(
        public readonly bool $keepOrder,
        public readonly OutputMode $mode,
        public readonly ?TextTemplate $tag,
        public readonly bool $json,
        public readonly bool $dryRun,
        public readonly bool $printsCommand,
        public readonly bool $tracesCommand,
    ) {}

    /** @throws UsageException */
    public static function of(GivenOptions $given, ReplacementStrings $strings): self
    {
        foreach (self::NOT_WITH_JSON as $name) {
            if ($given->flag('jsonl') && ($given->flag($name) || $given->text($name) !== null)) {
                throw new UsageException(
                    "option --{$name}: can't be combined with --jsonl, which writes one JSON object per job",
                );
            }
        }

        return new self(
            keepOrder: $given->flag('keep-order'),
            mode: self::mode($given),
            tag: self::tag($given, $strings),
            json: $given->flag('jsonl'),
            dryRun: $given->flag('dry-run'),
            printsCommand: $given->flag('print'),
            tracesCommand: $given->flag('trace'),
        );
    }

    /** Returns the object that prints the outputs of jobs; null if --results is given without --jsonl. */
    public function writer(Console $console, bool $hasResults): ?ResultWriter
    {
        return match (true) {
            $this->json => new JsonOutput($console),
            $hasResults => null,
            $this->mode === OutputMode::Lines => new LineOutput($console, $this->tag, $this->printsCommand),
            $this->mode === OutputMode::Direct => new DirectOutput($console, $this->printsCommand),
            default => new GroupedOutput($console, $this->tag, $this->printsCommand),
        };
    }

    private static function mode(GivenOptions $given): OutputMode
    {
        $mode = match (true) {
            $given->flag('ungroup') => OutputMode::Direct,
            $given->flag('line-buffer') => OutputMode::Lines,
            default => OutputMode::Grouped,
        };
        if ($mode !== OutputMode::Grouped && $given->text('queue') !== null) {
            $name = $mode === OutputMode::Direct ? 'ungroup' : 'line-buffer';

            throw new UsageException(
                "option --{$name}: can't be combined with --queue, which returns an output when its job is over",
            );
        }

        // With --keep-order, --line-buffer would print the same lines in the same order as grouped output.
        return $mode === OutputMode::Lines && $given->flag('keep-order') ? OutputMode::Grouped : $mode;
    }

    private static function tag(GivenOptions $given, ReplacementStrings $strings): ?TextTemplate
    {
        $text = $given->text('tag-string');

        return match (true) {
            $text !== null => new TextTemplate('--tag-string', strtr($text, ['\\t' => "\t"]), $strings),
            $given->flag('tag') => new TextTemplate('--tag', $strings->forValues(), $strings),
            default => null,
        };
    }
}

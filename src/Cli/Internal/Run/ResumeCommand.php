<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run;

use Spindle\Cli\Internal\GivenOptions;
use Spindle\Cli\Internal\TerminalText;
use Spindle\Command\Command;

/** The command that continues a run with the same job log. */
final class ResumeCommand
{
    /**
     * @param non-empty-list<string> $words command line of the run, with "run" at index $position
     * @param list<string>           $given resume and resume-failed, if these options were given
     */
    private function __construct(
        private readonly array $words,
        private readonly int $position,
        private readonly array $given,
    ) {}

    /** Returns the command that continues the run of this process; null if this process is not `spindle run`. */
    public static function ofThisProcess(GivenOptions $given): ?self
    {
        /** @var list<string> $words */
        $words = $_SERVER['argv'] ?? [];
        $position = array_search('run', $words, true);

        return $words === [] || $position === false || $position === 0
            ? null
            : new self($words, $position, array_values(array_filter(['resume', 'resume-failed'], $given->flag(...))));
    }

    /** Returns a text with the command that runs the failed and unfinished jobs; null if there are no such jobs. */
    public function hint(RunStatistics $statistics): ?string
    {
        $isComplete = $statistics->isComplete();
        if ($statistics->failed === 0) {
            return $isComplete ? null : "to run the jobs that have not finished: {$this->line('resume')}";
        }
        $others = $isComplete ? '' : ', and the jobs that have not finished';

        return "to run all failed jobs again{$others}: {$this->line('resume-failed')}";
    }

    private function line(string $option): string
    {
        $words = $this->words;
        if (array_intersect(['resume-failed', $option], $this->given) === []) {
            array_splice($words, $this->position + 1, 0, ["--{$option}"]);
        }

        return implode(' ', array_map(self::quote(...), $words));
    }

    /** Quotes a word for Bash. Bytes that a terminal can't show are escaped, so that users can copy the command. */
    private static function quote(string $word): string
    {
        return TerminalText::escape($word) === $word
            ? Command::quote($word)
            : "\$'" . addcslashes($word, "\0..\37\177..\377'\\") . "'";
    }
}

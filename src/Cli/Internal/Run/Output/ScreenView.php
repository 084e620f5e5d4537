<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Output;

use Spindle\Cli\Internal\Duration;
use Spindle\Cli\Internal\Run\Input\InputJob;
use Spindle\Cli\Internal\TerminalText;

final class ScreenView
{
    private const MIN_COLUMNS = 50;
    private const MIN_ROWS = 10;

    /** Lines that are always visible: totals, bar and rate. */
    private const HEAD_LINES = 3;

    private const BAR_TEXT_COLUMNS = 26;

    /** Largest number of job lines so far. The screen keeps this number of lines, so the lines below do not move. */
    private int $jobLines = 1;

    public function __construct(private readonly ScreenStyle $style) {}

    public static function fits(int $columns, int $rows): bool
    {
        return $columns >= self::MIN_COLUMNS && $rows >= self::MIN_ROWS;
    }

    /** @return non-empty-list<string> */
    public function lines(ScreenState $state, ?ScreenKeys $keys, int $columns, int $rows): array
    {
        $failures = array_map(
            fn(string $failure): string => $this->style->red(TerminalText::fit("failed: {$failure}", $columns)),
            $state->failures,
        );

        $help = $keys === null ? [] : [$this->style->faint(TerminalText::fit($keys->help(), $columns))];
        $foot = [...$failures, ...$help];
        $left = $rows - self::HEAD_LINES - \count($foot);
        $selected = $keys?->position($state->running);
        $output = $keys?->output();

        return [
            $this->totals($state, $columns),
            $this->bar($state, $columns),
            \sprintf('%11s  ', $state->rate()) . $state->sparkline,
            ...($selected === null || $output === null
                ? $this->jobs($state->running, $selected, $columns, $left)
                : $this->output($state->running[$selected], $output, $columns, $left)),
            ...$foot,
        ];
    }

    private function totals(ScreenState $state, int $columns): string
    {
        $statistics = $state->statistics;
        $failed = "{$statistics->failed} failed";
        $begin = "{$state->done()} done  " . \count($state->running) . " of {$statistics->concurrency} running  ";
        $end = '  ' . Duration::format($statistics->elapsed());
        $machine = TerminalText::fit(MachineLoad::now(), max(0, $columns - \strlen($begin . $failed . $end) - 2));
        $gap = $columns - \strlen($begin . $failed . $end) - TerminalText::width($machine);

        return $begin
            . ($statistics->failed > 0 ? $this->style->red($failed) : $failed)
            . $end . str_repeat(' ', max(0, $gap)) . $this->style->faint($machine);
    }

    private function bar(ScreenState $state, int $columns): string
    {
        $share = $state->share();
        $text = ($share === null ? '' : \sprintf('%3d%%  ', (int) floor($share * 100))) . $state->eta($this->style);
        $bar = BarView::bar($state, max(0, $columns - self::BAR_TEXT_COLUMNS - 2));

        return '[' . $this->style->green($bar) . '] ' . TerminalText::fit($text, self::BAR_TEXT_COLUMNS - 1);
    }

    /**
     * @param list<array{InputJob, float}> $running
     *
     * @return list<string>
     */
    private function jobs(array $running, ?int $selected, int $columns, int $rows): array
    {
        $this->jobLines = min(max($this->jobLines, \count($running)), max(1, $rows));
        $visible = \count($running) > $this->jobLines ? $this->jobLines - 1 : \count($running);
        $lines = [];
        $first = max(0, ($selected ?? 0) - $visible + 1);
        foreach (\array_slice($running, $first, $visible, true) as $i => [$job, $seconds]) {
            $line = self::job($job, $seconds, $columns);
            $lines[] = $i === $selected ? $this->style->inverse($line) : $line;
        }
        if ($visible < \count($running)) {
            $lines[] = $this->style->faint(\sprintf('%12s %d more', '', \count($running) - $visible));
        }

        return array_pad($lines, $this->jobLines, '');
    }

    /**
     * @param array{InputJob, float} $job
     *
     * @return list<string>
     */
    private function output(array $job, string $output, int $columns, int $rows): array
    {
        $count = max(1, $rows);
        $lines = array_map(
            static fn(string $line): string => TerminalText::fit(rtrim($line, "\r"), $columns),
            \array_slice(explode("\n", rtrim($output)), -max(1, $count - 1)),
        );
        $lines = \array_slice([$this->style->inverse(self::job($job[0], $job[1], $columns)), ...$lines], 0, $count);

        return array_pad($lines, $count, '');
    }

    private static function job(InputJob $job, float $seconds, int $columns): string
    {
        $begin = \sprintf('%11s  job %d: ', Duration::format(floor($seconds)), $job->sequence);

        return $begin . TerminalText::fit($job->loggedCommand(), $columns - \strlen($begin));
    }
}

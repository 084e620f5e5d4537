<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Output;

use Spindle\Cli\Internal\Duration;
use Spindle\Cli\Internal\TerminalText;

final class BarView
{
    private const MIN_BAR_COLUMNS = 5;

    /** Minimum width of the bar while the longest-running job is shown beside the bar. */
    private const PREFERRED_BAR_COLUMNS = 20;

    private const MIN_JOB_COLUMNS = 8;

    public function __construct(private readonly ScreenStyle $style) {}

    public function line(ScreenState $state, int $columns): string
    {
        $parts = [
            \count($state->running) . ' running',
            "{$state->statistics->failed} failed",
            $state->rate(),
            $state->share() === null ? Duration::format($state->statistics->elapsed()) : $state->eta($this->style),
        ];
        $done = $state->done();
        $available = $columns - \strlen($done) - 3; // 3 columns for one blank and two brackets
        while ($parts !== [] && $available - self::partsColumns($parts) < self::MIN_BAR_COLUMNS) {
            array_shift($parts);
        }
        $left = $available - self::partsColumns($parts);
        $slowest = $this->slowest($state, $left - self::PREFERRED_BAR_COLUMNS);
        $bar = self::bar($state, max(0, $left - TerminalText::width($slowest)));
        $text = '';
        foreach ($parts as $part) {
            $isFailure = str_ends_with($part, 'failed') && $state->statistics->failed > 0;
            $text .= '  ' . ($isFailure ? $this->style->red($part) : $part);
        }

        return "{$done} [" . $this->style->green($bar) . "]{$text}" . $this->style->faint($slowest);
    }

    /** Draws a bar that shows the share of finished jobs. If the share is unknown, each finished job moves a mark. */
    public static function bar(ScreenState $state, int $columns): string
    {
        $share = $state->share();
        if ($share === null) {
            $at = $columns < 3 ? 0 : $state->statistics->doneCount() % ($columns - 2);

            return substr(str_repeat('-', $at) . '<=>' . str_repeat('-', max(0, $columns - $at - 3)), 0, $columns);
        }
        $full = (int) floor($share * $columns);
        $head = $full < $columns ? '>' : '';

        return substr(str_repeat('=', $full) . $head . str_repeat(' ', $columns), 0, $columns);
    }

    /** @param list<string> $parts */
    private static function partsColumns(array $parts): int
    {
        return TerminalText::width(implode('', $parts)) + 2 * \count($parts);
    }

    private function slowest(ScreenState $state, int $columns): string
    {
        [$job, $seconds] = $state->running[0] ?? [null, 0.0];
        $prefix = '  ' . Duration::format($seconds) . ' ';
        $left = $columns - \strlen($prefix);

        return $job === null || $left < self::MIN_JOB_COLUMNS
            ? ''
            : $prefix . TerminalText::fit(
                $job->loggedCommand(),
                min($left, max(self::MIN_JOB_COLUMNS, intdiv($columns, 2))),
            );
    }
}

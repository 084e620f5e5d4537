<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Output;

use Spindle\Cli\Internal\Duration;
use Spindle\Cli\Internal\Run\RunStatistics;

/** Writes one line per second while the statistics change, for logs and for programs. */
final class LineProgress implements Progress
{
    private string $lastState = '';

    /** @param \Closure(string): void $write receives whole lines */
    public function __construct(private readonly \Closure $write, private readonly bool $json) {}

    public function update(RunStatistics $statistics): void {}

    public function hide(): void {}

    public function show(RunStatistics $statistics): void
    {
        $state = "{$statistics->submitted} {$statistics->doneCount()} {$statistics->total}";
        if ($state !== $this->lastState) {
            $this->lastState = $state;
            ($this->write)($this->json ? self::json($statistics) : self::plain($statistics));
        }
    }

    public function finish(RunStatistics $statistics): void
    {
        $this->lastState = '';
        $this->show($statistics);
    }

    public static function plain(RunStatistics $statistics): string
    {
        $total = $statistics->total === null ? '' : "/{$statistics->total}";
        $remaining = $statistics->remainingSeconds();
        $eta = $remaining === null ? '' : ', ETA ' . Duration::format($remaining);

        return \sprintf(
            "%d%s done, %d failed, %.1f/s%s\n",
            $statistics->doneCount(),
            $total,
            $statistics->failed,
            $statistics->rate(),
            $eta,
        );
    }

    public static function json(RunStatistics $statistics): string
    {
        $remaining = $statistics->remainingSeconds();

        return json_encode([
            'done' => $statistics->doneCount(),
            'total' => $statistics->total,
            'failed' => $statistics->failed,
            'running' => $statistics->runningCount(),
            'rate' => round($statistics->rate(), 3),
            'eta' => $remaining === null ? null : round($remaining, 3),
            'elapsed' => round($statistics->elapsed(), 3),
        ], \JSON_THROW_ON_ERROR) . "\n";
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

/** Writes one line per second while the figures change, for logs and for programs. */
final class LineProgress implements Progress
{
    private string $shown = '';

    /** @param \Closure(string): void $write receives whole lines */
    public function __construct(private readonly \Closure $write, private readonly bool $json) {}

    public function update(RunStatistics $figures): void {}

    public function hide(): void {}

    public function show(RunStatistics $figures): void
    {
        $state = "{$figures->started} {$figures->done()} {$figures->total}";
        if ($state !== $this->shown) {
            $this->shown = $state;
            ($this->write)($this->json ? self::json($figures) : self::plain($figures));
        }
    }

    public function finish(RunStatistics $figures): void
    {
        $this->shown = '';
        $this->show($figures);
    }

    public static function plain(RunStatistics $figures): string
    {
        $total = $figures->total === null ? '' : "/{$figures->total}";
        $remaining = $figures->remaining();
        $eta = $remaining === null ? '' : ', ETA ' . Duration::format($remaining);

        return \sprintf(
            "%d%s done, %d failed, %.1f/s%s\n",
            $figures->done(),
            $total,
            $figures->failed,
            $figures->rate(),
            $eta,
        );
    }

    public static function json(RunStatistics $figures): string
    {
        $remaining = $figures->remaining();

        return json_encode([
            'done' => $figures->done(),
            'total' => $figures->total,
            'failed' => $figures->failed,
            'running' => $figures->running(),
            'rate' => round($figures->rate(), 3),
            'eta' => $remaining === null ? null : round($remaining, 3),
            'elapsed' => round($figures->elapsed(), 3),
        ], \JSON_THROW_ON_ERROR) . "\n";
    }
}

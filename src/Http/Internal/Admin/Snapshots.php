<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Admin;

use Amp\Cancellation;
use Amp\CancelledException;
use Spindle\Http\HttpServerStatistics;
use Spindle\Http\ServerSentEvent;
use Spindle\Internal\Async\Condition;

/** Creates the data of the status page as JSON, once a second. The page computes rates from successive snapshots. */
final readonly class Snapshots
{
    private const INTERVAL_SECONDS = 1;

    public function __construct(private ServerOverview $overview) {}

    /**
     * Yields snapshots until the servers begin to stop, so that an open page does not delay the stop.
     *
     * @return \Generator<int, ServerSentEvent>
     */
    public function follow(?Cancellation $cancellation): \Generator
    {
        do {
            $statistics = $this->overview->statistics();
            yield new ServerSentEvent(self::snapshot($statistics), retry: self::INTERVAL_SECONDS * 1000);
        } while ($statistics->isReady() && self::waitForInterval($cancellation));
    }

    /** @return bool false if the request was cancelled, for example because the client has disconnected */
    private static function waitForInterval(?Cancellation $cancellation): bool
    {
        try {
            (new Condition())->waitFor(self::INTERVAL_SECONDS, $cancellation);

            return true;
        } catch (CancelledException) {
            return false;
        }
    }

    private static function snapshot(CombinedStatistics $statistics): string
    {
        $totals = $statistics->totals;

        return (string) json_encode([
            'time' => microtime(true),
            'ready' => $statistics->isReady(),
            'bounds' => HttpServerStatistics::DURATION_BOUNDS,
            'routes' => array_map(null, array_keys($totals->routes), array_values($totals->routes)),
            'pools' => array_map(null, array_keys($totals->pools), array_values($totals->pools)),
            'processes' => array_map(self::process(...), $statistics->processes),
        ] + get_object_vars($totals), \JSON_INVALID_UTF8_SUBSTITUTE | \JSON_PARTIAL_OUTPUT_ON_ERROR);
    }

    /** @return array<string, int|float|bool> */
    private static function process(HttpServerStatistics $process): array
    {
        return [
            'pid' => $process->pid,
            'started' => $process->startedAt,
            'stopping' => $process->stopping,
            'answered' => array_sum($process->answeredRequests),
            'inFlight' => $process->inFlight,
            'connections' => $process->connections,
            'lag' => $process->lag,
            'maxLag' => $process->maxLag,
            'memory' => $process->memory,
        ];
    }
}

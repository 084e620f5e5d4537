<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

use Spindle\Http\HttpException;
use Spindle\Http\HttpServerStatistics;
use Spindle\Http\Internal\Admin\CombinedStatistics;
use Spindle\Http\Internal\Admin\Readiness;
use Spindle\Http\Internal\Admin\ServerOverview;
use Spindle\Http\Internal\Admin\Totals;

/** Gets state and statistics of the worker processes from the supervisor, which adds counters of ended processes. */
final readonly class ProcessServers implements ServerOverview
{
    /** Seconds in which the supervisor has to answer. {@see ProcessQueries} gives the processes less time. */
    private const TIMEOUT = 2.5;
    private const TIMEOUT_FOR_HEALTH = 0.95;

    public function __construct(private SupervisorLink $link) {}

    /**
     * Returns current statistics. If a process does not answer in time, only its last known counters are used.
     *
     * @throws HttpException when the supervisor does not answer
     */
    public function statistics(): CombinedStatistics
    {
        $result = $this->link->query(ServingProcess::STATISTICS, self::TIMEOUT)
            ?? throw new HttpException(503, 'The supervisor does not answer');
        $others = $result['ended'] ?? new Totals();
        foreach (array_filter($result['silent'], \is_string(...)) as $lastStatistics) {
            $others->addCounters(HttpServerStatistics::fromJson($lastStatistics));
        }

        return new CombinedStatistics(array_map(HttpServerStatistics::fromJson(...), $result['answers']), $others);
    }

    public function readiness(): Readiness
    {
        $result = $this->link->query(ServingProcess::HEALTH, self::TIMEOUT_FOR_HEALTH);
        if ($result === null) {
            return new Readiness('stuck');
        }
        $health = array_map(static function (string $answer): array {
            /** @var array{stopping: bool, full: bool, checks: array<string, string|null>} $health */
            $health = json_decode($answer, true, flags: \JSON_THROW_ON_ERROR);

            return $health;
        }, $result['answers']);
        $accepting = array_filter($health, static fn(array $health): bool => !$health['stopping']);
        $ready = array_filter($accepting, static fn(array $health): bool => !$health['full']);

        return match (true) {
            $ready !== [] => new Readiness('', ...array_column($ready, 'checks')),
            $accepting !== [] => new Readiness('full'),
            $health !== [] => new Readiness('draining'),
            $result['silent'] !== [] => new Readiness('stuck'),
            default => new Readiness('starting'),
        };
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Http;

/** What a server was doing at one moment, and has done so far. It can be told to another process as JSON. */
final readonly class HttpServerStatistics
{
    /** Upper bounds of the buckets of {@see $durations}, in seconds; the last bucket has none. */
    public const BOUNDS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

    /**
     * @param float                          $started     Unix time
     * @param bool                           $stopping    whether it drains
     * @param int                            $inFlight    requests whose handler has not returned
     * @param int                            $connections that are open
     * @param int                            $accepted    connections that were taken
     * @param int                            $rejected    connections that were closed at once, as their address had too many
     * @param int                            $evicted     connections that were closed to make room for others, as they had kept the server waiting
     * @param int                            $maxConnections that can be open at once
     * @param bool                           $full        whether connections have had to wait for a second or more, as there was no room for them
     * @param array<int, int>                $answered    requests that were answered, by status
     * @param array<int, int>                $refused     messages that were refused before a handler saw them, by status
     * @param int                            $abandoned   requests that nobody waited for any more
     * @param list<int>                      $durations   answers by seconds from head to answer, each in the first bucket that it fits
     * @param float                          $duration    seconds of all answers together
     * @param array<string, array{int, float, int}> $routes by name: answers, their seconds together, those with a status of 500 or above
     * @param float                          $lag         seconds by which the event loop was late at its last look
     * @param float                          $maxLag      the most of the last minute
     * @param int                            $memory      bytes that PHP uses
     * @param array<string, array<string, int|float>> $pools figures of what was registered, by its name
     */
    public function __construct(
        public int $pid,
        public float $started,
        public bool $stopping,
        public int $inFlight,
        public int $connections,
        public int $accepted,
        public int $rejected,
        public int $evicted,
        public int $maxConnections,
        public bool $full,
        public int $handshakesFailed,
        public array $answered,
        public array $refused,
        public int $abandoned,
        public array $durations,
        public float $duration,
        public array $routes,
        public float $lag,
        public float $maxLag,
        public int $memory,
        public array $pools,
    ) {}

    /** @internal */
    public static function fromJson(string $json): self
    {
        /** @var array{pid: int, started: float, stopping: bool, inFlight: int, connections: int, accepted: int, rejected: int, evicted: int, maxConnections: int, full: bool, handshakesFailed: int, answered: array<int, int>, refused: array<int, int>, abandoned: int, durations: list<int>, duration: float, routes: array<string, array{int, float, int}>, lag: float, maxLag: float, memory: int, pools: array<string, array<string, int|float>>} $figures */
        $figures = json_decode($json, true, flags: \JSON_THROW_ON_ERROR);

        return new self(...$figures);
    }

    /**
     * A figure that JSON has no form for, such as INF, is told as 0.
     *
     * @internal
     */
    public function toJson(): string
    {
        return (string) json_encode($this, \JSON_PRESERVE_ZERO_FRACTION | \JSON_INVALID_UTF8_SUBSTITUTE | \JSON_PARTIAL_OUTPUT_ON_ERROR);
    }
}

<?php

declare(strict_types=1);

namespace Spindle\Http;

/** The state of a server at one moment, and its counters since its start. */
final readonly class HttpServerStatistics
{
    /** Upper bounds of the buckets of {@see $durationCounts}, in seconds; the last bucket has no bound. */
    public const DURATION_BOUNDS = [
        0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
    ];

    /**
     * @param float $startedAt Unix time
     * @param int $inFlight requests whose handler has not returned
     * @param int $sendingResponses responses that are being sent, such as downloads and event streams
     * @param int $rejectedConnections connections that were closed immediately, because their IPv4 address or IPv6 /64
     *     network had too many open connections
     * @param int $evictedConnections idle connections, and connections of slow clients, that the server closed to
     *     make room for other clients
     * @param int $maxConnections maximum number of open connections; open files of uploads can reduce it
     * @param bool $full whether new connections have waited for a second or more because there is no room for them
     * @param array<int, int> $answeredRequests requests that were answered, by status
     * @param array<int, int> $refusedRequests requests that the server refused before it called a handler, by status
     * @param int $abandonedRequests requests without a response, because the client or server closed the connection
     * @param int $cutOffResponses responses that an exception has cut off after their head. They are also counted as
     *     answered, by their status
     * @param list<int> $durationCounts histogram of durations, from a request's head to its response: the number of
     *     responses in each bucket. A response counts only in the first bucket whose bound is at least its duration
     * @param float $totalDuration sum of the durations of all responses, in seconds
     * @param array<string, array{int, float, int}> $routes by name: number of responses, sum of durations in seconds,
     *     number of errors. A response is an error if its status is 500 or above, or if an exception has cut it off
     * @param float $lag seconds by which the event loop was late at the last measurement
     * @param float $maxLag maximum lag of the last minute
     * @param int $memory bytes that PHP has allocated
     * @param array<string, array<string, int|float>> $pools values of the application's registered statistics, by name
     */
    public function __construct(
        public int $pid,
        public float $startedAt,
        public bool $stopping,
        public int $inFlight,
        public int $sendingResponses,
        public int $connections,
        public int $acceptedConnections,
        public int $rejectedConnections,
        public int $evictedConnections,
        public int $maxConnections,
        public bool $full,
        public int $failedHandshakes,
        public array $answeredRequests,
        public array $refusedRequests,
        public int $abandonedRequests,
        public int $cutOffResponses,
        public array $durationCounts,
        public float $totalDuration,
        public array $routes,
        public float $lag,
        public float $maxLag,
        public int $memory,
        public array $pools,
    ) {}

    /** @internal */
    public static function fromJson(string $json): self
    {
        /**
         * @var array{
         *     pid: int,
         *     startedAt: float,
         *     stopping: bool,
         *     inFlight: int,
         *     sendingResponses: int,
         *     connections: int,
         *     acceptedConnections: int,
         *     rejectedConnections: int,
         *     evictedConnections: int,
         *     maxConnections: int,
         *     full: bool,
         *     failedHandshakes: int,
         *     answeredRequests: array<int, int>,
         *     refusedRequests: array<int, int>,
         *     abandonedRequests: int,
         *     cutOffResponses: int,
         *     durationCounts: list<int>,
         *     totalDuration: float,
         *     routes: array<string, array{int, float, int}>,
         *     lag: float,
         *     maxLag: float,
         *     memory: int,
         *     pools: array<string, array<string, int|float>>,
         * } $values
         */
        $values = json_decode($json, true, flags: \JSON_THROW_ON_ERROR);

        return new self(...$values);
    }

    /** @internal Encodes the statistics. Numbers that JSON does not support, such as INF, become 0. */
    public function toJson(): string
    {
        return (string) json_encode(
            $this,
            \JSON_PRESERVE_ZERO_FRACTION | \JSON_INVALID_UTF8_SUBSTITUTE | \JSON_PARTIAL_OUTPUT_ON_ERROR,
        );
    }
}
